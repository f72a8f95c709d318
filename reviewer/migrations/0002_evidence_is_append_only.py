"""Take from every role but the owner the rights to change or delete evidence: the triggers are the second line."""

from __future__ import annotations

from django.db import migrations

REVOKE = """
DO $$
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT DISTINCT grantee, table_name FROM information_schema.role_table_grants
        WHERE table_schema = current_schema()
          AND table_name IN ('reviewer_auditevent', 'reviewer_decision', 'reviewer_outcome')
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
    dependencies = [("reviewer", "0001_initial")]
    operations = [migrations.RunSQL(REVOKE, migrations.RunSQL.noop)]
