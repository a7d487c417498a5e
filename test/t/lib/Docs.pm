# Reads the code blocks of the documentation, so that tests run the text that readers see.
#
# A block begins and ends with a ``` line. The word after the first ``` is the block's language. The
# words behind it, which are hidden from readers, say how tests use the block:
#
# - "run by test/t/310_sharding.pl: NAME": the test runs the block under this name.
# - "not run: REASON": no test can run the block.
# - "fails: PATTERN": the block must fail with this error.
#
# test/t/390_docs.pl runs the SQL blocks that have only a language, in the document's order.

package Docs;

use Exporter 'import';
use Randflake;

our @EXPORT = qw(code_blocks read_document block every_block_was_used);

# Returns all blocks of a document in order, as hashes with the keys language, text and line (the
# first line's number). The words behind the language add fields: `test` and `name`, or `not_run`,
# or `fails`.
sub code_blocks($file) {
    my (@blocks, $block, $fence);
    my $number = 0;
    for my $line (split /\n/, slurp_file($file)) {
        $number++;
        if (!$block && $line =~ /^(\s*)```(\w*)(.*)$/) {
            ($fence, my $use) = ($1, $3);
            $block = { language => $2, text => '', line => $number + 1 };
            if ($use =~ /^ run by (\S+): (\S+)$/) {
                @$block{qw(test name)} = ($1, $2);
            } elsif ($use =~ /^ (not run|fails): (.+)$/) {
                $block->{ $1 =~ tr/ /_/r } = $2;
            } elsif ($use ne '') {
                die "$file, line $number: no test understands \"$use\"";
            }
        } elsif ($block && $line eq "$fence```") {
            push @blocks, $block;
            undef $block;
        } elsif ($block) {
            $block->{text} .= $line =~ s/^\Q$fence\E//r . "\n";
        }
    }
    die "$file: the last code block has no end" if $block;
    return @blocks;
}

# A test first calls read_document, then `block` for each name, and at the end every_block_was_used.
# `block` returns the text of all blocks that have the given name.
my ($document, %texts, %unused);

sub read_document {
    my ($test);
    ($document, $test) = @_;
    for my $block (code_blocks($document)) {
        next unless ($block->{test} // '') eq $test;
        $texts{ $block->{name} } .= $block->{text};
        $unused{ $block->{name} } = 1;
    }
}

sub block($name) {
    delete $unused{$name};
    return $texts{$name} // die "$document has no block $name for this test";
}

sub every_block_was_used {
    is_deeply([ sort keys %unused ], [], "every block of $document for this test was used");
}

1;
