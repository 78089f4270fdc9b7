import Foundation
import Testing

extension Interop {
  /// With the package and docs/operate/carriers.md alone an operator gets a call each way, with every carrier of the page.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.missing == nil && Asterisk.missing == nil && TranslatedNetwork.missing == nil
        && OwnRoot.missing == nil,
      "\(Surroundings.missing ?? Asterisk.missing ?? TranslatedNetwork.missing ?? OwnRoot.missing ?? "")"),
    .serialized)
  struct OperatorTests {
    private static let profiles = ["twilio", "telnyx", "sipgate", "telekom", "plivo", "asterisk", "teams", "whatsapp"]
    private static let said = Array(Speech.fromFirstWord(Speech.app).prefix(20_000))

    @Test func `with each carrier's sample, behind NAT, in a chroot without the sources: a call each way`() async throws {
      let folder = NSTemporaryDirectory() + "trunkline-operator-\(getpid())"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try Speech.write(Self.said, folder + "/said-by-app.wav")
      try Speech.write(Baresip.short, folder + "/said-by-carrier.wav")
      let python = try #require(Surroundings.python)
      let script = Surroundings.sources + "/peers/new_operator.py"
      var profiles = Self.profiles
      try await expectGoodAudio {
        let words = [python, "-B", script, "/mnt/root", Asterisk.root, folder] + profiles
        let operation = try Spawned("operator", "/usr/bin/unshare", OwnRoot.command(words.joined(separator: " ")), in: folder)
        #expect(try await operation.finish(within: 400) == 0, "\(operation.text)")
        let faults = try profiles.map { profile in
          try Speech.faults("\(profile) → app", said: Baresip.short, heardIn: folder + "/\(profile)-app.wav")
            + Speech.faults("app → \(profile)", said: Self.said, heardIn: folder + "/\(profile)-carrier.wav")
        }
        profiles = zip(profiles, faults).filter { !$0.1.isEmpty }.map(\.0)
        return Array(faults.joined())
      }
      try FileManager.default.removeItem(atPath: folder)
    }
  }
}

/// This system as another root file system, without the project and with the binaries under test; it disappears with its mount
/// namespace.
private enum OwnRoot {
  /// Arguments of `unshare` for a command of the shell in a mount namespace that has it at /mnt/root.
  static func command(_ command: String) -> [String] {
    let script = """
      mount -t tmpfs tmpfs /mnt; mkdir /mnt/upper /mnt/work /mnt/root
      mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
      mount -t tmpfs tmpfs "/mnt/root\(Surroundings.package)"
      mount -t proc proc /mnt/root/proc; mount --bind /dev /mnt/root/dev
      cp "\(Surroundings.trunkline)" "\(Surroundings.lab)" /mnt/root/usr/bin/
      mkdir -p /mnt/root/etc/trunkline /mnt/root/var/lib/trunkline
      head -c 32 /dev/urandom | base64 >/mnt/root/etc/trunkline/jwt.key
      exec \(command)
      """
    return ["--mount", "--propagation", "private", "/bin/sh", "-ec", script]
  }

  static let missing: String? = {
    let tried = Process()
    tried.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
    tried.arguments = command("true")
    (tried.standardError, tried.standardOutput) = (FileHandle.nullDevice, FileHandle.nullDevice)
    try? tried.run()
    tried.waitUntilExit()
    return tried.terminationStatus == 0 ? nil : "no overlay file system over / here"
  }()
}
