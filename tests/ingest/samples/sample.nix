# The shop.
{ pkgs ? import <nixpkgs> {}, lib, ... }:
let
  name = "shop";
  helper = x: x + 1;
  both = { a, b }: helper a;
in
pkgs.stdenv.mkDerivation rec {
  inherit name;
  version = "1.0";
  "quoted-name" = x: x;
  meta.license = lib.licenses.mit;
  buildInputs = [ (pkgs.callPackage ./item.nix { }) ];
  made = size: { width = size; depth = let inner = 1; in inner; };
  install = helper (both { a = 1; b = 2; });
}
