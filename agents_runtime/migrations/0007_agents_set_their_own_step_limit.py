from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents_runtime', '0006_harmless_errors_may_be_tried_again'),
    ]

    operations = [
        migrations.AddField(
            model_name='agentspec',
            name='step_seconds',
            field=models.PositiveIntegerField(
                blank=True, help_text="Until a step that hangs is ended; empty: the installation's limit.", null=True
            ),
        ),
    ]
