! The shop.
module shop
  use iso_c_binding, only: c_int
  implicit none
  integer, parameter :: limit = 10
  type, extends(base) :: item
    character(20) :: name
    real :: price
  contains
    procedure :: total => item_total
  end type item
  interface close
    module procedure close_item
  end interface
contains
  ! Prices.
  function item_total(this) result(total)
    class(item), intent(in) :: this
    real :: total
    total = helper(this%price)
    call close_item(this)
  end function item_total
  subroutine close_item(this)
    class(item) :: this
    include 'x.inc'
  end subroutine
  pure real function helper(x)
    real, intent(in) :: x
    helper = x * limit
  end function helper
end module shop
program main
  use shop
  call close_item(x)
end program main

module shelves
  type :: shelf
    type(shelf), pointer :: next => null()
  contains
    procedure, public, pass(self) :: put, take
    generic :: add => put, put_many
  end type shelf
  enum, bind(c)
    enumerator :: red = 1, blue
  end enum
  interface operator(+)
    module procedure :: join
  end interface
end module shelves
