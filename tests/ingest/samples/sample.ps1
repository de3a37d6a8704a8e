using namespace System.IO
using module Shop.Items
Import-Module -Name Shop.Core

enum Kind {
    Food
    Book
}

# A shop.
class Shop : Base, IPriced {
    [string] $Name
    static [int] $Count = 0
    hidden [int] $secret

    Shop([string] $name) { $this.Name = $name }

    [double] Price([string] $thing) {
        return Get-Price $thing
    }
    static [Shop] Make() { return [Shop]::new('main') }
}

<#
.SYNOPSIS
Gets a thing.
#>
function Get-Thing {
    param([string] $Name)
    $local = Join-Path $Name 'Get-Thing'
    Write-Output $local
    $shop.Price($Name)
}

filter Select-Even { if ($_ % 2 -eq 0) { $_ } }

function script:helper([int] $x) { Get-Thing -Name $x }

$Script:Limit = 10
$total = 0
workflow Do-It { Get-Thing }
