"""Keep what people were shown, what they opened of it, and what a decision changed; append-only like all evidence."""

import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
import reviewer.models.showings
from django.conf import settings
from django.db import migrations, models


REVOKE = """
DO $$
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT DISTINCT grantee, table_name FROM information_schema.role_table_grants
        WHERE table_schema = current_schema()
          AND table_name IN ('reviewer_snapshot', 'reviewer_showing', 'reviewer_expansion')
          AND grantee <> current_user
    LOOP
        EXECUTE format(
            'REVOKE UPDATE, DELETE, TRUNCATE ON %I FROM %s',
            held.table_name,
            CASE held.grantee WHEN 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(held.grantee) END
        );
    END LOOP;
END
$$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('reviewer', '0003_deadlines_hold_or_reject'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Expansion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('part', models.CharField(help_text='Names the part: a hash of its pointer.', max_length=16)),
                ('pointer', models.TextField(help_text='Where it is in the arguments, as a person can read it.')),
                ('via', models.CharField(choices=[('web', 'web'), ('api', 'api')], max_length=5)),
                ('opened_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Showing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('renderer_version', models.PositiveIntegerField()),
                ('language', models.CharField(max_length=20)),
                ('first_shown_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('sha256', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('html', models.TextField()),
                ('kept_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='cardopening',
            name='card_opening_once',
        ),
        migrations.AddField(
            model_name='decision',
            name='changes',
            field=models.TextField(blank=True, help_text='What the answer changes in the proposal, as a JSON list; empty: not kept then.'),
        ),
        migrations.AddField(
            model_name='expansion',
            name='person',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='expansion',
            name='task',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='expansions', to='reviewer.reviewtask'),
        ),
        migrations.AddField(
            model_name='showing',
            name='task',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='showings', to='reviewer.reviewtask'),
        ),
        migrations.AddField(
            model_name='cardopening',
            name='showing',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='openings', to='reviewer.showing'),
        ),
        migrations.AddField(
            model_name='decision',
            name='showing',
            field=models.ForeignKey(help_text='The card as this person had it before them; none for a decision through the API.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='reviewer.showing'),
        ),
        migrations.AddConstraint(
            model_name='cardopening',
            constraint=models.UniqueConstraint(condition=models.Q(('showing__isnull', True)), fields=('task', 'person', 'digest', 'via'), name='card_opening_once'),
        ),
        migrations.AddConstraint(
            model_name='cardopening',
            constraint=models.UniqueConstraint(fields=('task', 'person', 'digest', 'via', 'showing'), name='card_opening_once_as_shown'),
        ),
        migrations.AddConstraint(
            model_name='snapshot',
            constraint=models.CheckConstraint(condition=models.Q(('sha256', reviewer.models.showings.Sha256('html'))), name='snapshot_is_named_by_its_content'),
        ),
        migrations.AddField(
            model_name='showing',
            name='snapshot',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='showings', to='reviewer.snapshot'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='snapshot',
            trigger=pgtrigger.compiler.Trigger(name='snapshot_is_final', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='bad9a4aaed95100ac5f6e1eeeeb99c6ca7d00c0b', operation='UPDATE OR DELETE', pgid='pgtrigger_snapshot_is_final_540c3', table='reviewer_snapshot', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='snapshot',
            trigger=pgtrigger.compiler.Trigger(name='snapshots_are_never_emptied', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Evidence is append-only: TRUNCATE of % is refused.', TG_TABLE_NAME;", hash='54124f16cec9b1182f50c43f6841a6d56d6a77fc', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_snapshots_are_never_emptied_69350', table='reviewer_snapshot', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='expansion',
            constraint=models.UniqueConstraint(fields=('task', 'person', 'digest', 'part'), name='expansion_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='expansion',
            trigger=pgtrigger.compiler.Trigger(name='expansion_is_final', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='c32b877fb069ab72dc86d028e89549be87de75ab', operation='UPDATE OR DELETE', pgid='pgtrigger_expansion_is_final_d4df2', table='reviewer_expansion', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='expansion',
            trigger=pgtrigger.compiler.Trigger(name='expansions_are_never_emptied', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Evidence is append-only: TRUNCATE of % is refused.', TG_TABLE_NAME;", hash='a91ed6599ad206320d0276bb2ba444ede60686d7', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_expansions_are_never_emptied_0f714', table='reviewer_expansion', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='showing',
            constraint=models.UniqueConstraint(fields=('task', 'digest', 'renderer_version', 'language'), name='showing_is_kept_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='showing',
            trigger=pgtrigger.compiler.Trigger(name='showing_is_final', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='aa8952bc3bb110f7c525f00bf129f17501616576', operation='UPDATE OR DELETE', pgid='pgtrigger_showing_is_final_0c842', table='reviewer_showing', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='showing',
            trigger=pgtrigger.compiler.Trigger(name='showings_are_never_emptied', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'Evidence is append-only: TRUNCATE of % is refused.', TG_TABLE_NAME;", hash='924708d8b20eb47ba58b5a84c75053254ff3fe1e', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_showings_are_never_emptied_92a75', table='reviewer_showing', when='BEFORE')),
        ),
        migrations.RunSQL(REVOKE, migrations.RunSQL.noop),
    ]
