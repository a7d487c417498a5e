#!/usr/bin/perl
# Prints sentences of pages and comments in their paragraphs, so that a reader can judge them.
#
#   scripts/sentences.pl 60             60 sentences of this commit, drawn at random
#   scripts/sentences.pl FILE...        all sentences of these files
#
# The first eight digits of the commit are the seed of the draw. « and » enclose the sentence. Each
# list item is printed after the sentence that introduces the list, and each comment before the next
# line of code. Tables, headings and code are left out.

use strict;
use warnings;
use List::Util qw(shuffle);

my $between = qr/(?<=[.?!])["\)]?\s+(?=[A-Z`"*\[(])/;    # sentences

# Returns the paragraphs of a file, each with its first line's number, its text, and the code below.
sub paragraphs {
    my ($file) = @_;
    open my $in, '<', $file or die "$file: $!\n";
    my @lines = map { s/\s+$//r } <$in>;
    my $sign = $file =~ /\.(?:h|cpp|c|js)$/ ? '//' : $file =~ /\.sql$/ ? '--' : $file =~ /\.md$/ ? '' : '#';
    my (@found, $fence, $continues, $item);
    my $code = -1;    # the last line that is no prose
    for my $n (0 .. $#lines) {
        my $text = $lines[$n] =~ /^\s*\Q$sign\E(?!!)(?: ?(.*))$/ ? $1 : undef;
        $fence = !$fence if !$sign && $lines[$n] =~ /^\s*```/;
        undef $text if !$sign && ($fence || $lines[$n] =~ /^\s*(?:```|\||#|<!--)/);
        if (!defined $text || $text !~ /\w/ || $text =~ /\S {2,}\S|^--- |NOLINT|cppcheck-|shellcheck |^\s*\$ /
            || !$item && $text =~ /^ {4,}(?! *-)/ || !$continues && $sign && $text =~ /^ {2,}(?![-*]|\d+\.)/) {
            $found[-1]{below} //= $lines[$n] if $continues && !defined $text && $lines[$n] =~ /\w/;
            $continues = $item = 0;
            $code = $n if !defined $text;
            next;
        }
        ($continues, $item) = (0, 1) if $text =~ s/^\s*(?:[-*]|\d+\.) +//;
        push @found, { line => $n + 1, text => '', item => $item, code => $code } if !$continues;
        $found[-1]{text} .= ($continues ? ' ' : '') . ($text =~ s/^\s+//r);
        $continues = 1;
    }
    my ($lead, $after) = ('', -1);
    for my $paragraph (@found) {
        ($lead, $after) = ((split $between, $paragraph->{text})[-1], $paragraph->{code}) if !$paragraph->{item};
        $paragraph->{lead} = $lead if $paragraph->{item} && $lead =~ /:$/ && $after == $paragraph->{code};
    }
    return @found;
}

my $count = @ARGV == 1 && $ARGV[0] =~ /^\d+$/ ? shift : 0;
my @files = @ARGV ? @ARGV : grep { /\.(?:md|h|cpp|c|js|sql|pl|pm|sh)$/ && -f } split /\n/, `git ls-files`;
my @sentences;
for my $file (@files) {
    for my $paragraph (paragraphs($file)) {
        my @parts = split $between, $paragraph->{text};
        for my $i (grep { ($parts[$_] =~ tr/ //) >= 2 } 0 .. $#parts) {
            my $text = join ' ', @parts[ 0 .. $i - 1 ], "«$parts[$i]»", @parts[ $i + 1 .. $#parts ];
            $text = "$paragraph->{lead} - $text" if $paragraph->{lead};
            push @sentences, "$file:$paragraph->{line}\n   $text\n" . ($paragraph->{below} ? "   | $paragraph->{below}\n" : '');
        }
    }
}
if ($count) {
    srand hex substr `git rev-parse HEAD`, 0, 8;
    @sentences = (shuffle @sentences)[ 0 .. $count - 1 ];
}
my $number = 0;
print ++$number, '. ', $_, "\n" for @sentences;
