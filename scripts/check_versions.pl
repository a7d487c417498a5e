#!/usr/bin/perl
# Checks that every place which names a version names the same one, that META.json follows PGXN's
# specification 1.0.0, and that each version of an extension can be updated to the default one.
#
#   scripts/check_versions.pl             while working
#   scripts/check_versions.pl --release   what must hold at a release, too: dates and status
#
# The version is default_version in extension/randflake.control, X.Y. The other extensions have the same.
# A release of it is X.Y.Z, in META.json, in the topmost entries of CHANGELOG.md and debian/changelog, and in
# rpm/randflake.spec.

use strict;
use warnings;

use File::Basename qw(basename dirname);
use JSON::PP;

chdir dirname($0) . '/..' or die "could not change the directory: $!";
my $release = grep { $_ eq '--release' } @ARGV;

my @problems;

# expect WHAT, CONDITION: one thing that must hold.
sub expect {
    my ($what, $good) = @_;
    push @problems, $what unless $good;
    return;
}

sub content_of {
    my ($file) = @_;
    open my $in, '<:raw', $file or die "could not open $file: $!\n";
    local $/ = undef;
    return scalar <$in>;
}

# --- the versions ----------------------------------------------------------------------------

my %default;    # of each extension
for my $control (glob 'extension/*.control') {
    ($default{ basename($control, '.control') }) =
      content_of($control) =~ /^default_version\s*=\s*'(\d+\.\d+)'$/m
      or die "$control has no default_version like '1.0'\n";
}
my $default = $default{randflake};
expect("extension/$_.control: version $default{$_} is not that of randflake, $default",
    $default{$_} eq $default)
  for sort keys %default;
my $meta = JSON::PP->new->decode(content_of('META.json'));
my $version = $meta->{version} // '';
expect("META.json: version \"$version\" is not $default.Z", $version =~ /^\Q$default\E\.\d+$/);

my ($changed, $date) = content_of('CHANGELOG.md') =~ /^## (\S+) \((.*)\)$/m;
expect("CHANGELOG.md: its topmost entry is of \"$changed\", META.json of \"$version\"",
    $changed eq $version);
expect("CHANGELOG.md: \"$date\" is neither a date nor \"not released yet\"",
    $date =~ /^(?:\d{4}-\d\d-\d\d|not released yet)$/);

my ($packaged, $distribution) =
  content_of('debian/changelog') =~ /\Arandflake \(([^)]*)-[^-)]+\) (\S+);/;
expect("debian/changelog: its topmost entry is of \"$packaged\", META.json of \"$version\"",
    $packaged eq $version);

my $spec = content_of('rpm/randflake.spec');
my ($of_rpm) = $spec =~ /^Version: +(\S+)$/m;
expect("rpm/randflake.spec: its version is \"$of_rpm\", that of META.json \"$version\"", $of_rpm eq $version);
expect("rpm/randflake.spec: the topmost entry of its changelog is not of \"$version\"",
    $spec =~ /^%changelog\n\* .* - \Q$version\E-\d+\n/m);

# Everybody is sent to the same place.
my $homepage = $meta->{resources}{homepage} // '';
for (
    [ 'debian/control', qr/^Homepage: (\S+)$/m ],
    [ 'debian/control.in', qr/^Homepage: (\S+)$/m ],
    [ 'debian/copyright', qr/^Source: (\S+)$/m ],
    [ 'debian/watch', qr/^(https\S+) /m ],
    [ 'rpm/randflake.spec', qr/^URL: +(\S+)$/m ])
{
    my ($where, $pattern) = @$_;
    my ($found) = content_of($where) =~ $pattern;
    expect("$where: its homepage is not that of META.json", defined $found && $found eq $homepage);
}

if ($release) {
    expect('CHANGELOG.md: the release has no date', $date =~ /^\d/);
    expect('META.json: release_status is not "stable"',
        ($meta->{release_status} // 'stable') eq 'stable');
    expect('debian/changelog: the release is UNRELEASED', $distribution ne 'UNRELEASED');
}

# --- META.json -------------------------------------------------------------------------------

# What the PGXN Meta Spec 1.0.0 says of each value: a function of it, an array of
# what the one value or each of a list must be, or a hash of keys. "!" before a key: it must be there.
# "*": the key and value of any other. Any map may have keys that begin with x_.
my $string = sub { defined $_[0] && !ref $_[0] && $_[0] ne '' };
my $url = sub { $string->(@_) && $_[0] =~ m{\A[a-z][a-z0-9+.-]*://[^\s/]+\.[^\s/]+(?:/\S*)?\z}i };
my $file = sub { $string->(@_) && $_[0] !~ m{\A/|(?:\A|/)\.\.(?:/|\z)} && -e $_[0] };
my $name = sub { $string->(@_) && $_[0] =~ m{\A[^\s/\\\x00-\x1f\x7f]{2,}\z} };
my $number = qr/0|[1-9][0-9]*/;
my $semver = sub { $string->(@_) && $_[0] =~ /\A$number\.$number\.$number(?:-?[A-Za-z][0-9A-Za-z-]*)?\z/ };
my $range = sub {
    return $string->(@_)
      && !grep { !/\A\s*(?:(?:[<>]=?|[!=]=)\s*)?(\S+)\s*\z/ || !($1 eq '0' || $semver->($1)) } split /,/, $_[0], -1;
};
my $of = sub {
    my %known = map { $_ => 1 } @_;
    return sub { $string->(@_) && $known{ $_[0] } };
};
my $license = $of->(qw(agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3
      gpl_1 gpl_2 gpl_3 lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql
      qpl_1_0 ssleay sun zlib open_source restricted unrestricted unknown));
my $specification = {
    '!name' => $name,
    '!version' => $semver,
    '!abstract' => $string,
    '!maintainer' => [$string],
    '!license' => [$license],
    '!meta-spec' => { '!version' => $of->('1.0.0'), url => $url },
    '!provides' => {
        '*' => [ $name, { '!file' => $file, '!version' => $semver, abstract => $string, docfile => $file } ]
    },
    description => $string,
    generated_by => $string,
    release_status => $of->(qw(stable testing unstable)),
    tags => [ sub { $string->(@_) && length $_[0] < 256 && $_[0] !~ m{[/\\\x00-\x1f]} } ],
    no_index => { file => [$string], directory => [$string] },
    prereqs => {
        '*' => [
            $of->(qw(configure build test runtime develop)),
            { '*' => [ $of->(qw(requires recommends suggests conflicts)), { '*' => [ $name, $range ] } ] }
        ]
    },
    resources => {
        homepage => $url,
        bugtracker => { web => $url, mailto => sub { $string->(@_) && $_[0] =~ /\A[^\s@]+@[^\s@]+\z/ } },
        repository => { url => $url, web => $url, type => sub { $string->(@_) && $_[0] =~ /\A[a-z]+\z/ } }
    },
};

# follows WHERE, VALUE, what it must be: records what does not.
sub follows {
    my ($where, $value, $rule) = @_;
    if (ref $rule eq 'CODE') {
        expect("META.json: $where is not what the specification allows", $rule->($value));
    }
    elsif (ref $rule eq 'ARRAY') {
        follows($where, $_, $rule->[0]) for ref $value eq 'ARRAY' ? @$value : $value;
    }
    elsif (ref $value ne 'HASH') {
        expect("META.json: $where is no map", 0);
    }
    else {
        expect("META.json: $where has no $_", exists $value->{$_}) for map { /\A!(.*)/ ? $1 : () } keys %$rule;
        for my $key (grep { !/\Ax_/i } sort keys %$value) {
            my $inner = $rule->{$key} // $rule->{"!$key"};
            if (!defined $inner && $rule->{'*'}) {
                follows("the key $where.$key", $key, $rule->{'*'}[0]);
                $inner = $rule->{'*'}[1];
            }
            expect("META.json: $where.$key is not in the specification", defined $inner);
            follows("$where.$key", $value->{$key}, $inner) if defined $inner;
        }
    }
    return;
}
follows('it', $meta, $specification);
expect('META.json: the license is not that of the file LICENSE',
    $meta->{license} eq 'postgresql' && content_of('LICENSE') =~ /\APostgreSQL License\n/);
expect('META.json: a tag is there twice', do {
    my %seen;
    !grep { $seen{ lc $_ }++ } @{ $meta->{tags} };
});
expect('META.json: it provides other extensions than there are',
    join(' ', sort keys %{ $meta->{provides} }) eq join(' ', sort keys %default));
for my $name (sort keys %{ $meta->{provides} }) {
    my $extension = $meta->{provides}{$name};
    expect("META.json: the version of $name differs", ($extension->{version} // '') eq $version);
    expect("META.json: the file of $name does not install version $default",
        ($extension->{file} // '') eq "extension/$name--$default.sql");
}

# --- the scripts -----------------------------------------------------------------------------

my (%installs, %updates);    # of each extension
for (glob 'extension/*.sql') {
    if (m{/(\w+)--([\d.]+)--([\d.]+)\.sql$}) { push @{ $updates{$1}{$2} }, $3 }
    elsif (m{/(\w+)--([\d.]+)\.sql$}) { $installs{$1}{$2} = 1 }
    else { expect("$_: the name of no script", 0) }
}

# Whether updates lead from one version of an extension to the default one.
sub reaches_default {
    my ($name, $from) = @_;
    return $from eq $default || grep { reaches_default($name, $_) } @{ $updates{$name}{$from} // [] };
}
for my $name (sort keys %default) {
    expect("extension: no script installs $name", $installs{$name});
    expect("extension: nothing updates $name $_ to $default", reaches_default($name, $_))
      for sort keys %{ $installs{$name} }, keys %{ $updates{$name} };
}
expect("extension/$_.control is missing", $default{$_}) for sort keys %installs, keys %updates;

print map { "$_\n" } @problems;
exit 1 if @problems;
print "version $version of $date: everything agrees\n";
