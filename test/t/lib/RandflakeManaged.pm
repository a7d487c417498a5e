# Makes databases in which an ordinary role uses managed/randflake.sql, without the library.

package RandflakeManaged;

use Exporter 'import';
use Randflake;

our @EXPORT = qw(managed_server install_managed as_owner);

# Starts a server without the library, with a database `app`, which the unprivileged role `owner`
# owns. Adds `conf` to postgresql.conf, and passes `install_path` to PostgreSQL::Test::Cluster.
sub managed_server($name, %options) {
    my $node = PostgreSQL::Test::Cluster->new($name, $options{install_path} ? (install_path => $options{install_path}) : ());
    $node->init(allows_streaming => $options{streaming} // 0);
    $node->append_conf('postgresql.conf', $options{conf} // '');
    $options{own_clock} ? start_under_clock($node) : $node->start;
    $node->sql('CREATE ROLE owner LOGIN CREATEROLE; CREATE DATABASE app OWNER owner');
    return $node;
}

# Installs the script or a replacement, and configures it unless node_id is undef.
sub install_managed($node, $node_id = undef, $secret = undef, $script = slurp_file('managed/randflake.sql')) {
    as_owner($node, "BEGIN; $script COMMIT;");
    my $secret_sql = defined $secret ? "'$secret'" : 'NULL';
    as_owner($node, "SELECT randflake.randflake_configure($secret_sql, $node_id)") if defined $node_id;
}

sub as_owner($node, $sql, $database = undef) {
    return $node->safe_psql($database // 'app', $sql, extra_params => [ '-U', 'owner' ]);
}

1;
