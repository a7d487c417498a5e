# Checks that the documentation works. Every SQL block of README.md and docs/*.md runs as printed,
# in order, unless the page marks it otherwise (see lib/Docs.pm). Links have targets, and every
# file, SQL object, setting, metric and message that a page mentions exists.
use Docs;
use Encode qw(decode encode);
use File::Basename;
use Randflake;

# Runs each page's blocks on a separate server, so that pages do not affect each other.
sub run_blocks($file, @blocks) {
    my $node = start_server(basename($file, '.md'), extensions => [qw(randflake_type randflake_coordinator)],
        settings => { node_id => 1, secret => random_secret(), max_wait => '1h' });
    for my $block (@blocks) {
        my $where = "$file, line $block->{line}";
        my ($status, $out, $errors) = $node->psql('postgres', $block->{text}, on_error_stop => 1);
        if (defined $block->{fails}) {
            ok($status != 0 && $errors =~ /$block->{fails}/, "$where fails as it says");
        } else {
            is($status, 0, "$where runs");
        }
        diag($block->{text}, $errors) if $status != 0 && !defined $block->{fails};
    }
    $node->stop;
}

# A block may name a test. Checks that this test reads the page and calls every_block_was_used.
sub check_runner($file, $block) {
    my ($test, $where) = ($block->{test}, "$file, line $block->{line}");
    my $source = -e $test ? slurp_file($test) : '';
    ok($source =~ /^read_document\('\Q$file\E', '\Q$test\E'\);$/m
          && $source =~ /^every_block_was_used\(\);$/m, "$where: $test runs $block->{name}");
}

# Returns the anchors of the headings as GitHub makes them. A repeated anchor gets a number.
sub anchors_of {
    my %seen;
    return map { my $anchor = lc s/[^\w\s-]//gr =~ tr/ /-/r; my $n = $seen{$anchor}++; $n ? "$anchor-$n" : $anchor }
      slurp_file($_[0]) =~ s/^\s*```.*?^\s*```$//gmsr =~ /^#+ (.+)$/mg;
}

# Checks links of the form [text](target). Reports links of any other form as broken.
sub check_links($file, $text) {
    my @broken = $text =~ s/^\s*```.*?^\s*```$|`[^`]+`//gmsr =~ /(\]\[.*|<(?:a|img) .*|\]\((?![^()\s]+\)).*|^\[.*\]: .*)/mg;
    while ($text =~ /\]\(([^)\s]+)\)/g) {
        my ($path, $anchor) = split /#/, $1, 2;
        next if $path =~ /^https?:/;
        my $target = $path eq '' ? $file : dirname($file) . "/$path";
        my @anchors = -f $target ? anchors_of($target) : ();
        push @broken, $1 if !-e $target || (defined $anchor && !grep { $_ eq $anchor } @anchors);
    }
    is("@broken", '', "$file: links within the project lead somewhere");
}

my @pages = map { my $file = $_; map { "$file: $_" } grep { !-e } slurp_file($file) =~ m{\b(docs/[\w/.-]*\.(?:md|svg|yml))}g }
  grep { -f } glob 'META.json *.control {extension,managed,migrate}/* {scripts,bench,packaging/*,docs/monitoring}/* src/*/*/* test/t/*.pl';
is("@pages", '', 'pages that the sources name exist');

# Collects all strings of the sources. A string may span several lines.
my $sources = join "\n", map { slurp_file($_) } glob 'extension/*.sql managed/* migrate/* docs/monitoring/*.{yml,json} src/*/*/*.{h,cpp}';
my @strings = map { s/\\"/"/gr =~ s/''/'/gr } grep { defined }
  $sources =~ s/(["'])\s*\n\s*\g1//gr =~ /"((?:[^"\\\n]|\\.)+)"|'((?:[^'\n]|'')+)'/g;
my $folders = join '|', 'core', 'pg', map { quotemeta =~ s{/}{}r } grep { -d && $_ ne 'build' } glob '.ci .github *';
my $conversion = qr/%(?:\d\$)?(?:ll)?[a-zA-Z]/;
my @patterns = map { join '.+', map { quotemeta } split $conversion, $_, -1 }
  grep { length s/$conversion//gr >= 12 } @strings;

# Returns whether a text is a message with values filled in, or consists of parts of messages.
sub is_message($text) {
    return 1 if grep { $text =~ /^$_$/ } @patterns;
    my @parts = map { tr/"//dr } split / *… */, $text;
    return @parts == grep { my $part = $_; grep { index(tr/"//dr, $part) >= 0 } @strings } @parts;
}

sub check_names($file, $text) {
    my @unknown = grep { $sources !~ /\b\Q$_\E\b/ && !/_NN$|^randflake\.randflake$/ }
      $text =~ /(?<![\w\/.-])((?:randflake|snowflake)(?:_|\.(?!(?:md|control)\b))\w+)/g;
    # A page may name a test by its number alone, as in test/t/390.
    push @unknown, grep { !-e s{^(?=(?:core|pg)/)}{src/}r && !-e dirname($file) . "/$_" && !(m{^test/t/\d+$} && (() = glob "${_}_*.pl")) && !/-X\./ }
      $text =~ m{(?<![\w/.-])((?:$folders)/[\w./-]*\w)}g;
    push @unknown, grep { my $name = $_; !grep { -e "$_/$name" } glob 'src/*/* test/* managed' }
      $text =~ /`(\w+\.(?:h|cpp|sh))`/g;
    push @unknown, grep { slurp_file('Makefile') !~ /^#.* make \Q$_\E\b|^\Q$_\E:/m } $text =~ /`make ([a-z-]+)/g;
    is("@unknown", '', "$file: names of objects, settings, files and targets exist");

    # In quoted messages, an ellipsis replaces a part that varies.
    my @quoted = $text =~ /^\s*(?:ERROR|WARNING|NOTICE|LOG|DETAIL|HINT): +(.+)$/mg;
    push @quoted, map { split /", or "/ } $text =~ /^#+ Why does it say "(.+)"\?$/mg;
    push @quoted, map { s/^`\w+: |:`|`//gr } map { split /`, `/ } grep { !/^`(?:\w+\(|[A-Z]+ )/ }
      $text =~ /^\| (?:\w{5} \| )?(`[^|`]+ [^|]+?)(?: …)? \|/mg;
    @unknown = grep { !is_message($_) && !/^(?:permission denied|function)/ } @quoted;
    is("@unknown", '', "$file: messages are as quoted");
}

# Finds the statements that match a pattern, and returns all strings in them that follow the match.
sub messages_of($file, $before, $quote) {
    my ($text, @found) = (slurp_file($file) =~ s/(["'])\s*\n\s*\g1//gr);
    $text =~ s/\bereport(\((?:[^()"]|"(?:[^"\\]|\\.)*"|(?1))*\))|\bRAISE\b(?:[^;']|'(?:[^']|'')*')*;/$& =~ m{hint\(|HINT =} ? '' : $&/ge;
    while ($text =~ /$before/g) {
        my $depth = 0;
        while ($text =~ /\G(?:$quote((?:[^$quote\\\n]|\\.|$quote$quote)*)$quote|([(\[{])|([)\]}])|([,;])|.)/gs) {
            my ($string, $open, $close, $end) = ($1, $2, $3, $4);
            push @found, $string if defined $string;
            $depth += $open ? 1 : $close ? -1 : 0;
            last if $depth < 0 || ($end && !$depth);
        }
    }
    return map { s/\\"|"//gr =~ s/''/'/gr } @found;
}

# Checks that docs/troubleshooting.md contains each message that has no hint. Skips a message that
# is almost only conversions such as %s, because the page replaces conversions by example values.
sub check_messages {
    my @messages = map { messages_of($_, qr/errmsg\(|ERRCODE_\w+,\s*(?!errmsg)|record_problem\(LeaseProblem::\w+,/, '"') }
      glob 'src/*/*/*.{h,cpp}';
    push @messages, map { messages_of($_, qr/MESSAGE =\s+|\bmessage :=\s+/, q(')) }
      glob('{extension,managed,migrate}/*.sql');
    @messages = grep { length s/… *//gr >= 20 && / / } map { s/%(?:\.\*)?(?:ll)?[a-z]/…/gir } @messages;
    cmp_ok(scalar @messages, '>', 80, 'the sources have messages without a hint');
    my $page = slurp_file('docs/troubleshooting.md') =~ s/^```.*?^```$//gmsr =~ tr/\n/ /r;
    my @quotes = map { tr/"//dr } $page =~ /`([^`]+)`/g, $page =~ /"([^"`?]+)"/g;
    my @missing = grep {
        my $message = $_;
        !grep { 2 * length >= length $message && $message =~ join '.*', map { quotemeta } split / *… */ } @quotes
    } @messages;
    is(join("\n", @missing), '', 'docs/troubleshooting.md has every message without a hint');
}
check_messages();

# Messages about settings, secrets and files must have a hint if the operator can fix the problem.
for my $file (glob 'src/pg/{main,secret,server,settings,slots,window}/*.cpp') {
    my $text = slurp_file($file);
    my @bare;
    while ($text =~ /\bereport(\((?:[^()"]|"(?:[^"\\]|\\.)*"|(?1))*\))/g) {
        push @bare, $1 if $1 !~ /hint\(|INTERNAL_ERROR|outside the valid range|randflake has %d secrets|clock was set back/;
    }
    is(join("\n", @bare), '', "$file: each message has a hint");
}

for my $file (qw(README.md CONTRIBUTING.md CHANGELOG.md), sort glob 'docs/*.md') {
    my $text = slurp_file($file);
    my @sql = grep { $_->{language} eq 'sql' } code_blocks($file);
    check_links($file, $text);
    check_names($file, $text);
    my @long = grep { length > 100 && !/^\||\]\(|^<!--/ } split /\n/, decode('UTF-8', $text) =~ s/^\s*```.*?^\s*```$//gmsr;
    is(join("\n", map { encode('UTF-8', $_) } @long), '', "$file: prose has at most 100 columns, tables and links excepted");
    check_runner($file, $_) for grep { $_->{test} } code_blocks($file);
    note("$file, line $_->{line}: not run: $_->{not_run}") for grep { $_->{not_run} } @sql;
    my @here = grep { !$_->{test} && !$_->{not_run} } @sql;
    run_blocks($file, @here) if @here;
}
done_testing();
