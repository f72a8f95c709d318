from django.db import migrations, models

GRANTS = [
    ('decision', 'A recorded decision'),
    ('condition', "The agent's own condition said that nobody need be asked"),
    ('retry', 'A person asked for a retry'),
    ('run_again', 'A person chose to run it again'),
    ('once', "The agent's own code guards it by a key"),
    ('harmless', 'Its author says that such an error harms nothing'),
]


class Migration(migrations.Migration):

    dependencies = [
        ('agents_runtime', '0005_a_build_may_lose_a_runs_place'),
    ]

    operations = [
        migrations.AlterField(
            model_name='toolexecution',
            name='grant',
            field=models.CharField(choices=GRANTS, max_length=10),
        ),
        migrations.AlterField(
            model_name='toolexecution',
            name='next_grant',
            field=models.CharField(
                blank=True,
                choices=GRANTS,
                help_text='One-shot permit for one more attempt.',
                max_length=10,
            ),
        ),
        migrations.RemoveConstraint(
            model_name='toolexecution',
            name='execution_has_its_decision',
        ),
        migrations.AddConstraint(
            model_name='toolexecution',
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ('pause__isnull', False),
                    ('grant__in', ['condition', 'once']),
                    models.Q(('attempt__gt', 1), ('grant__in', ['retry', 'run_again', 'harmless'])),
                    _connector='OR',
                ),
                name='execution_has_its_decision',
            ),
        ),
    ]
