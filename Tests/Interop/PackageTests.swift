import Foundation
import Testing

extension Interop {
  /// What `Scripts/dist` packs, from binaries that are there: the release build of the suite. How it installs and runs is tried by
  /// `Scripts/dist-check`, which needs a Debian to install it in.
  @Suite(
    .enabled(
      if: Surroundings.binaries != nil && FileManager.default.isExecutableFile(atPath: "/usr/bin/dpkg-shlibdeps"),
      "needs TRUNKLINE_BINARY, a release build, and dpkg-dev"), .serialized)
  struct PackageTests {
    private func run(_ command: String, in folder: String) async throws -> String {
      let made = try Spawned("sh", "/bin/sh", ["-ec", command], in: folder)
      let status = try await made.finish(within: 120)
      try #require(status == 0, "\(command): \(made.text.suffix(3_000))")
      return made.text
    }

    @Test func `two runs of one commit give the same packages, with unit, configuration, manual and completions`() async throws {
      let folder = NSTemporaryDirectory() + "trunkline-dist-\(getpid())"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let from = try #require(Surroundings.binaries)
      for out in ["a", "b"] {
        _ = try await run(
          "LEVEL=0 DIST=\(folder)/\(out) \(Surroundings.package)/Scripts/dist --from \(from) packages", in: folder)
      }
      let sums = try ["a", "b"].map { try String(contentsOfFile: folder + "/\($0)/SHA256SUMS", encoding: .utf8) }
      #expect(sums[0] == sums[1] && sums[0].split(separator: "\n").count == 4)

      let files = try await run("dpkg-deb --contents a/trunkline_*.deb", in: folder)
      for path in [
        "./usr/bin/trunkline", "./lib/systemd/system/trunkline.service", "./etc/trunkline/trunkline.yaml",
        "./usr/share/man/man1/trunkline.1.gz", "./usr/share/bash-completion/completions/trunkline",
        "./usr/share/trunkline/alerts.yml", "./usr/share/trunkline/grafana/quality.json",
        "./usr/share/doc/trunkline/docs/operate/install.md",
      ] {
        #expect(files.contains(path + "\n"), "\(path) is not in the package")
      }
      #expect(!files.contains("root/root") || files.split(separator: "\n").allSatisfy { $0.contains("root/root") }, "\(files)")
      let control = try await run(
        "dpkg-deb --field a/trunkline_*.deb; dpkg-deb --ctrl-tarfile a/trunkline_*.deb | tar -xO ./conffiles", in: folder)
      #expect(control.contains("libssl3") && control.contains("libopus0") && control.contains("/etc/trunkline/trunkline.yaml"))
      let manual = try await run(
        "dpkg-deb --fsys-tarfile a/trunkline_*.deb | tar -xO ./usr/share/man/man1/trunkline.1.gz | gunzip", in: folder)
      #expect(manual.contains(".SS trunkline serve") && manual.contains("\\-\\-config"))
      let parts = try await run("cat a/*.spdx.json", in: folder)
      #expect(parts.contains("\"grdb.swift\"") && parts.contains("libssl3"))
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze")))
    func `the unit is hardened: systemd-analyze security says 2 at most`() async throws {
      let said = try await run(
        "systemd-analyze security --offline=true \(Surroundings.package)/Deploy/systemd/trunkline.service | tail -1", in: "/tmp")
      let level = said.firstMatch(of: /service: ([0-9.]+)/).flatMap { Double($0.1) }
      #expect(level ?? 10 <= 2, "\(said)")
    }
  }
}

extension Surroundings {
  /// The folder of a release build.
  static let binaries = ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"].map {
    URL(fileURLWithPath: $0).deletingLastPathComponent().path
  }
}
