class Flashgrep < Formula
  include Language::Python::Virtualenv

  desc "Code search by a local daemon: exact text, symbols and meaning"
  homepage "https://github.com/flashgrep/flashgrep"
  url "https://files.pythonhosted.org/packages/source/f/flashgrep/flashgrep-1.0.0rc1.tar.gz"
  sha256 "REPLACE_WITH_THE_CHECKSUM_OF_THE_RELEASE"
  license "Apache-2.0"

  depends_on "python@3.13"
  depends_on "ripgrep"

  # Wheels of the dependencies, since some have Rust or C++ sources.
  def install
    virtualenv_create(libexec, "python3.13")
    system libexec/"bin/python", "-m", "ensurepip"
    system libexec/"bin/python", "-m", "pip", "install", buildpath
    bin.install_symlink libexec/"bin/flashgrep"
    man1.install_symlink libexec/"share/man/man1/flashgrep.1"
  end

  service do
    run [opt_bin/"flashgrep", "daemon", "run"]
    keep_alive true
  end

  test do
    (testpath/"a.txt").write "needle\n"
    assert_match "a.txt", shell_output("#{bin}/flashgrep index . 2>&1; #{bin}/flashgrep query needle | cat")
  end
end
