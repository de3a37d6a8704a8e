package Shop::Core;
use strict;
use warnings;
use parent 'Shop::Base';
use List::Util qw(sum first);
require Shop::Item;

use constant LIMIT => 10;
use constant { ONE => 1, TWO => 2 };
our $VERSION = '1.0';
my $count = 0;

# Makes a shop.
sub new {
    my ($class, %args) = @_;
    my $self = bless { %args }, $class;
    $self->init(1);
    return $self;
}

sub Shop::Other::close { helper(1) }

sub helper {
    my $local = shift;
    return sum($local, Shop::Item->price, Shop::Item::total($local));
}

=head1 NAME

new in documentation

=cut

package Shop::Basket {
    sub add { my $f = sub { 1 }; &helper(2) }
}

1;
__END__
sub not_code { }
