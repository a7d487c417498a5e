#!/bin/bash
# Runs Debian 12's Roundcube, which works with 53-bit keys but not with the type randflake.
#
#   PGPORT=... scripts/apps/roundcube.sh
#
# Needs root, mmdebstrap, and a server that has the extension, listens on localhost, and trusts its
# roles. Builds a root file system of 500 MB, and replaces the database randflake_roundcube.
#
# These points need attention. Each point names the page that describes it.
#   Roundcube takes a new key from currval() of a sequence (docs/drivers.md, "Move existing keys").
#   The function intval() misreads keys of the type randflake (docs/migrating.md, "Check an existing
#   application").

set -euo pipefail
export PGHOST=localhost PGPORT=${PGPORT:-5432} PGUSER=postgres PGDATABASE=randflake_roundcube
root=$(mktemp -d /var/tmp/roundcube.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"
DEBIAN_FRONTEND=noninteractive mmdebstrap --quiet --variant=apt bookworm "$root" \
    --include=roundcube-core,roundcube-pgsql,php-cli \
    --setup-hook='mkdir -p "$1/etc" && echo 127.0.0.1 localhost >"$1/etc/hosts"' \
    --essential-hook='echo roundcube-core roundcube/dbconfig-install boolean false | chroot "$1" debconf-set-selections'
cat >>"$root/etc/roundcube/config.inc.php" <<END
\$config['db_dsnw'] = 'pgsql://$PGUSER@$PGHOST:$PGPORT/$PGDATABASE';
\$config['log_driver'] = 'stdout';
END

in_database() { psql -qX -v ON_ERROR_STOP=1 "$@"; }
# The expression $1 makes keys. In $1, format() puts the sequence's name in place of %1$s.
convert() {
    in_database -v default="$1" <<'END'
SELECT format('ALTER TABLE %I ALTER %I TYPE bigint', table_name, column_name)
    || CASE WHEN column_default ~ 'nextval|randflake'
            THEN format(', ALTER %I SET DEFAULT ', column_name) || format(:'default', table_name || '_seq') ELSE '' END
FROM information_schema.columns
WHERE table_schema = 'public' AND data_type IN ('integer', 'bigint') AND column_name ~ '_id$' \gexec
END
}
in_roundcube() { cat >"$root/run.php" && chroot "$root" php /run.php 2>&1; }

in_database -d postgres -c 'SET client_min_messages = warning' -c "DROP DATABASE IF EXISTS $PGDATABASE" -c "CREATE DATABASE $PGDATABASE"
in_database <"$root/usr/share/roundcube/SQL/postgres.initial.sql"
in_database <<END
CREATE SCHEMA randflake;
CREATE EXTENSION randflake_type SCHEMA randflake CASCADE;
ALTER DATABASE $PGDATABASE SET search_path = public, randflake;
END

read -rd '' setup <<'END' || true
<?php
define('INSTALL_PATH', '/var/lib/roundcube/');
require INSTALL_PATH . 'program/include/clisetup.php';
$app = rcube::get_instance();
$db = $app->get_dbh();
function check($what, $is) { print(($is ? '' : 'failed: ') . "$what\n"); $is || exit(1); }
function row($name) { return ['name' => $name, 'email' => ["$name@example.org"]]; }
END
convert 'randflake53_generate()'
in_roundcube <<END
$setup
check('currval() without a sequence that is set: no user', !@rcube_user::create('ada', 'localhost'));
END

in_database -c 'DELETE FROM users'
convert "setval('%1\$s', randflake53_generate())"
in_roundcube <<END
$setup
\$user = rcube_user::create('ada', 'localhost');
\$identity = \$user->list_identities()[0];
\$other = \$user->insert_identity(['name' => 'Ada', 'email' => 'a@example.org']);
\$book = new rcube_contacts(\$db, \$user->ID);
\$contact = \$book->insert(row('grace'));
\$group = \$book->create_group('friends')['id'];
check('identifiers', min(\$user->ID, \$identity['identity_id'], \$other, \$contact, \$group) > 2 ** 32);
check('the user', rcube_user::query('ada', 'localhost')->ID == \$user->ID);
check('an identity, changed', \$user->update_identity(\$other, ['name' => 'L']) && \$user->get_identity(\$other)['name'] == 'L');
check('an identity, deleted', \$user->delete_identity(\$other) && count(\$user->list_identities()) == 1);
check('settings', \$user->save_prefs(['timezone' => 'UTC']));
check('a response', \$user->get_response(\$user->insert_response(['name' => 'r', 'data' => 'd']))['data'] == 'd');
check('a contact, searched', \$book->search('*', 'grace')->first()['ID'] == \$contact);
check('a contact, changed', \$book->update(\$contact, row('hopper')));
check('a contact in a group', \$book->add_to_group(\$group, \$contact) == 1
    && array_keys(\$book->get_record_groups(\$contact)) == [\$group]);
check('a contact by its key', \$book->get_record(\$contact, true)['name'] == 'hopper');
check('a contact, deleted', \$book->delete(\$contact) == 1 && \$book->count()->count == 0);
END
chroot "$root" /usr/share/roundcube/bin/deluser.sh --host=localhost ada
[ "$(in_database -Atc 'SELECT count(*) FROM contacts')" = 0 ]

in_database -c 'ALTER TABLE contactgroupmembers DROP COLUMN contact_id' \
    -c 'ALTER TABLE contacts ALTER contact_id DROP DEFAULT, ALTER contact_id TYPE randflake USING contact_id::randflake,
        ALTER contact_id SET DEFAULT randflake_next()'
in_roundcube <<END
$setup
\$user = rcube_user::create('grace', 'localhost');
\$book = new rcube_contacts(\$db, \$user->ID);
\$book->insert(row('ada'));
\$contact = \$book->list_records()->first()['ID'];
check("the type: contact \$contact is not deleted", \$book->delete(\$contact) == 0 && \$book->list_records()->count == 1);
END
