# For a tap: copy this file to Formula/condense.rb of the tap, with the version and the checksum of the release's source archive.
# The release workflow prints both.
class Condense < Formula
  desc "Condenses the conversations of agents when the context window is nearly full"
  homepage "https://github.com/condensehq/condense"
  url "https://github.com/condensehq/condense/archive/refs/tags/v@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"
  head "https://github.com/condensehq/condense.git", branch: "main"

  depends_on "go" => :build

  def install
    ldflags = "-s -w -X github.com/condensehq/condense/cmd/condense/internal/cli.version=v#{version}"
    system "go", "build", *std_go_args(ldflags:), "./cmd/condense"
    generate_completions_from_executable(bin/"condense", "completion")
  end

  service do
    run [opt_bin/"condense", "serve"]
    keep_alive true
    log_path var/"log/condense.log"
    error_log_path var/"log/condense.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/condense version")
  end
end
