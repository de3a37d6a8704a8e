{
  description = "Code search by a local daemon: exact text, symbols and meaning";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in {
      # Several dependencies are not in nixpkgs: uv installs the released wheels into the user's cache on the first run.
      packages = each (pkgs: {
        default = pkgs.writeShellApplication {
          name = "flashgrep";
          runtimeInputs = [ pkgs.uv pkgs.python313 pkgs.ripgrep pkgs.git pkgs.less ];
          text = ''exec uvx --python python3.13 "flashgrep==1.0.0rc1" "$@"'';
        };
      });
    };
}
