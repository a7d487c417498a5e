#!/usr/bin/perl
# Checks that every place which names a version names the same one, that META.json follows PGXN's
# specification 1.0.0, and that each version of an extension can be updated to the default one.
#
#   scripts/check_versions.pl             while working
#   scripts/check_versions.pl --release   what must hold at a release, too: dates and status
#
# The version is default_version in extension/randflake.control, X.Y. The other extensions have the same.
# A release of it is X.Y.Z, in META.json and in the topmost entries of CHANGELOG.md and debian/changelog.

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

if ($release) {
    expect('CHANGELOG.md: the release has no date', $date =~ /^\d/);
    expect('META.json: release_status is not "stable"',
        ($meta->{release_status} // 'stable') eq 'stable');
    expect('debian/changelog: the release is UNRELEASED', $distribution ne 'UNRELEASED');
}

# --- META.json -------------------------------------------------------------------------------

for my $key (qw(name version abstract maintainer license provides meta-spec)) {
    expect("META.json: $key is missing", defined $meta->{$key} && $meta->{$key} ne '');
}
# Semantic versions, https://semver.org, and the kinds of ranges that this project uses.
my $semver = qr/(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[0-9A-Za-z-]+)?/;
expect('META.json: the name has a character that is not allowed',
    $meta->{name} =~ m{\A[^\s/\\\x00-\x1f]{2,}\z});
expect('META.json: meta-spec is not 1.0.0', $meta->{'meta-spec'}{version} eq '1.0.0');
expect('META.json: the license is not that of the file LICENSE',
    $meta->{license} eq 'postgresql' && content_of('LICENSE') =~ /\APostgreSQL License\n/);
expect('META.json: release_status is none of stable, testing, unstable',
    ($meta->{release_status} // 'stable') =~ /^(?:stable|testing|unstable)$/);
expect('META.json: tags are not distinct strings', do {
    my %seen;
    !grep { ref || length > 255 || $seen{$_}++ } @{ $meta->{tags} // [] };
});
for my $phase (keys %{ $meta->{prereqs} // {} }) {
    expect("META.json: unknown phase $phase", $phase =~ /^(?:configure|build|test|runtime|develop)$/);
    for my $relation (keys %{ $meta->{prereqs}{$phase} }) {
        expect("META.json: unknown relation $relation",
            $relation =~ /^(?:requires|recommends|suggests|conflicts)$/);
        my $needed = $meta->{prereqs}{$phase}{$relation};
        expect("META.json: $_ $needed->{$_} is no version", $needed->{$_} =~ /^(?:0|$semver)$/)
          for keys %$needed;
    }
}
expect('META.json: it provides other extensions than there are',
    join(' ', sort keys %{ $meta->{provides} }) eq join(' ', sort keys %default));
for my $name (sort keys %{ $meta->{provides} }) {
    my $extension = $meta->{provides}{$name};
    expect("META.json: the version of $name differs", ($extension->{version} // '') eq $version);
    expect("META.json: the file of $name does not install version $default",
        ($extension->{file} // '') eq "extension/$name--$default.sql");
    expect("META.json: there is no file $_", -e $_)
      for map { $extension->{$_} // "for provides.$name.$_" } qw(file docfile);
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
