from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents_runtime', '0007_agents_set_their_own_step_limit'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='fed_by',
            field=models.TextField(
                db_default='[]',
                default='[]',
                help_text='Canonical list of opaque references to those who gave it input since.',
            ),
        ),
    ]
