#!/bin/bash
# Runs Debian 12's Redmine. It works with 53-bit keys, but not if issues have keys of the type
# randflake.
#
#   PGPORT=... scripts/apps/redmine.sh
#
# Needs root, mmdebstrap, and a server that has the extension, listens on localhost, and trusts its
# roles. Builds a root file system of 1 GB, and replaces the database redmine_default.
#
# These points need attention. See docs/migrating.md, "Check an existing application".
#   Columns that refer to a key but have no constraint, such as issues.root_id, have 32 bits.
#   Redmine accepts only digits as the number of an issue, and refuses subtasks of an issue whose
#   key is text or negative: "Parent task is invalid".
#   Without USAGE on the schema, no operator of the type works (docs/drivers.md, "The database").

set -euo pipefail
export PGHOST=localhost PGUSER=postgres DEBIAN_FRONTEND=noninteractive
root=$(mktemp -d /var/tmp/redmine.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root"
psql -qX -d postgres -c 'DROP DATABASE IF EXISTS redmine_default' -c 'DROP ROLE IF EXISTS "redmine/instances/default"' \
    -c 'CREATE ROLE "redmine/instances/default" LOGIN' -c 'CREATE DATABASE redmine_default OWNER "redmine/instances/default"'
mmdebstrap --quiet --variant=apt --include=redmine,redmine-pgsql bookworm "$root" \
    --setup-hook='mkdir -p "$1/etc" && echo 127.0.0.1 localhost >"$1/etc/hosts"'

in_database() { psql -qX -v ON_ERROR_STOP=1 -d redmine_default; }
in_redmine() {
    chroot "$root" sh -c 'cd /usr/share/redmine && RAILS_ENV=production bundle exec rails runner -' 2>&1
}

in_database <<'END'
CREATE SCHEMA randflake;
GRANT USAGE ON SCHEMA randflake TO PUBLIC;
CREATE EXTENSION randflake_type SCHEMA randflake CASCADE;
ALTER DATABASE redmine_default SET search_path = public, randflake;
SET search_path = public, randflake;
SELECT format('ALTER TABLE %I ALTER %I TYPE bigint', table_name, column_name)
    || CASE WHEN column_default LIKE 'nextval%' THEN format(', ALTER %I SET DEFAULT randflake53_generate()', column_name) ELSE '' END
FROM information_schema.columns
WHERE table_schema = 'public' AND data_type = 'integer' AND column_name ~ '(^|_)id$' \gexec
END

setup=$(cat <<'END'
def check(what) = (yield) ? puts(what) : abort("failed: #{what}")
Setting.rest_api_enabled = '1'
user = User.new(firstname: 'Ada', lastname: 'L', mail: "a#{rand(10**9)}@example.org", language: 'en', admin: true)
user.login = user.mail
user.save!
project = Project.create!(name: 'P', identifier: "p#{rand(10**9)}", trackers: Tracker.all)
priority = IssuePriority.first || IssuePriority.create!(name: 'N')
make = lambda do |more = {}|
  Issue.create!({ project: project, tracker: Tracker.first, author: user, subject: 'S', status: IssueStatus.first, priority: priority }.merge(more))
end
issue = make.call
END
)
in_redmine <<END
$setup
child = make.call(parent_issue_id: issue.id)
check('identifiers') { [project, user, issue, child].all? { |row| row.id > 2**32 } }
check('a subtask') { child.reload.parent == issue && child.root_id == issue.id }
issue.reload.init_journal(user, 'note')
issue.update!(subject: 'T')
check('a journal') { issue.journals.reload.map(&:notes).include?('note') }
relation = IssueRelation.create!(issue_from: issue, issue_to: make.call, relation_type: 'relates')
check('a relation') { issue.relations.include?(relation) }
activity = TimeEntryActivity.first || TimeEntryActivity.create!(name: 'A')
time = TimeEntry.create!(project: project, issue: issue, user: user, author: user, hours: 1, spent_on: Date.today, activity: activity)
check('a time entry') { issue.reload.spent_hours == 1 }
app = ActionDispatch::Integration::Session.new(Rails.application)
app.host! 'localhost'
["issues/#{issue.id}.json", "issues/#{issue.id}", "projects/#{project.id}.json",
 "users/#{user.id}.json", "time_entries/#{time.id}.json", "issues.json?parent_id=#{issue.id}"].each do |path|
  check(path) { app.get("/#{path}", headers: { 'X-Redmine-API-Key' => user.api_key }) == 200 }
end
issue.reload.destroy
check('deleted, with its subtask') { !Issue.exists?(child.id) }
END

in_database <<'END'
SELECT format('ALTER TABLE %I ALTER %I DROP DEFAULT, ALTER %2$I TYPE randflake USING %2$I::randflake', t, c)
FROM (VALUES ('issues', 'id'), ('issues', 'parent_id'), ('issues', 'root_id'), ('time_entries', 'issue_id'),
             ('issue_relations', 'issue_from_id'), ('issue_relations', 'issue_to_id')) AS of_issues (t, c) \gexec
ALTER TABLE issues ALTER id SET DEFAULT randflake_next();
END
in_redmine <<END | grep -v 'unknown OID'
$setup
begin
  make.call(parent_issue_id: issue.id)
rescue ActiveRecord::RecordInvalid => e
  check("the type: #{e.message}") { e.message.include?('Parent task is invalid') }
else
  abort('failed: a subtask of the type was refused before')
end
END
