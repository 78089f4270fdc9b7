import Foundation
import Glibc
import Testing

extension Interop {
  /// The SDK on a telephone that leaves its Wi-Fi: its address disappears, and another one appears.
  @Suite(
    .tags(.audio), .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct MovingNetworkTests {
    @Test(.enabled(if: TwoNetworks.missing == nil || Surroundings.isRequired, "\(TwoNetworks.missing ?? "")"))
    func `Wi-Fi to cellular in a call: both sides hear each other again, on the same call, and the trunk notices nothing`()
      async throws
    {
      let networks = TwoNetworks()
      try await networks.make()
      let gateway = try await networks.gateway(TwoNetworks.address)
      try EndlessTone.write(14, gateway.folder + "/tone.wav")
      let phone = try await networks.phone(
        gateway, at: TwoNetworks.address, ["--answer", "--calls", "1", "--play", "tone.wav", "--record", "app-heard.wav"])
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "12", "--play", "tone.wav", "--record", "trunk-heard.wav"])
      _ = try await phone.event("connected", within: 10)
      _ = try await phone.event("firstAudio", within: 5)
      let before = phone.fields("pair", of: "media").count
      try await networks.leaveWiFi()
      #expect(
        await eventually(within: 10) { phone.fields("pair", of: "media").count > before },
        "no new pair\n\(phone.text)\n\(gateway.process.text)")
      #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(phone.text)")
      _ = try await phone.finish(within: 10)
      for side in ["app", "trunk"] {
        let gaps = try EndlessTone.gaps(gateway.folder + "/\(side)-heard.wav")
        #expect(gaps.seconds > 9, "\(side) heard \(gaps.seconds) s of tone\n\(phone.text)")
        #expect(gaps.longest < 3, "\(side): \(gaps.longest) s without sound\n\(phone.text)")
        print("path change: \(side) heard \(gaps.seconds) s, longest gap \(gaps.longest) s")
      }
      #expect(phone.fields("reason", of: "ended") == ["remoteHangup"], "\(phone.text)")
      try await gateway.finish()
    }

    @Test(.enabled(if: TwoNetworks.missing == nil || Surroundings.isRequired, "\(TwoNetworks.missing ?? "")"))
    func `Wi-Fi to cellular while it rings: it rings on, is answered, and both sides hear each other`() async throws {
      let networks = TwoNetworks()
      try await networks.make()
      let gateway = try await networks.gateway(TwoNetworks.address)
      try EndlessTone.write(6, gateway.folder + "/tone.wav")
      let phone = try await networks.phone(
        gateway, at: TwoNetworks.address,
        ["--answer", "--answer-after", "2", "--calls", "1", "--play", "tone.wav", "--record", "app-heard.wav"])
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "4", "--play", "tone.wav", "--record", "trunk-heard.wav"])
      _ = try await phone.event("ringing", within: 10)
      try await networks.leaveWiFi()
      #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(phone.text)")
      _ = try await phone.finish(within: 10)
      for side in ["app", "trunk"] {
        let gaps = try EndlessTone.gaps(gateway.folder + "/\(side)-heard.wav")
        #expect(gaps.seconds > 3.5, "\(side) heard \(gaps.seconds) s of tone\n\(phone.text)")
      }
      #expect(phone.fields("reason", of: "ended") == ["remoteHangup"], "\(phone.text)")
      try await gateway.finish()
    }

    @Test(.enabled(if: TwoNetworks.missing == nil || Surroundings.isRequired, "\(TwoNetworks.missing ?? "")"))
    func `40 s without any network: the call lives and is heard again; 60 s: it ends on both sides, networkLost`() async throws {
      let networks = TwoNetworks()
      try await networks.make()
      let gateway = try await networks.gateway(TwoNetworks.address)
      try EndlessTone.write(130, gateway.folder + "/tone.wav")
      let phone = try await networks.phone(
        gateway, at: TwoNetworks.address, ["--answer", "--calls", "1", "--play", "tone.wav", "--record", "app-heard.wav"])
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "130", "--play", "tone.wav", "--record", "trunk-heard.wav"])
      _ = try await phone.event("firstAudio", within: 10)
      try await networks.connect(false)
      try await Task.sleep(for: .seconds(40))  // the case itself
      try await networks.connect(true)
      try await Task.sleep(for: .seconds(6))  // the recordings are searched for the audio of these seconds
      try await networks.connect(false)
      #expect(try await trunk.finish(within: 70) == 0, "\(trunk.text)\n\(phone.text)")
      let record = try await gateway.records(1).first
      #expect((record?["end"] as? [String: Any])?["reason"] as? String == "networkLost", "\(phone.text)")
      try await networks.connect(true)
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)")
      #expect(phone.fields("reason", of: "ended") == ["networkLost"], "\(phone.text)")
      for side in ["app", "trunk"] {
        let gaps = try EndlessTone.gaps(gateway.folder + "/\(side)-heard.wav")
        #expect(gaps.longest > 35 && gaps.longest < 50, "\(side): \(gaps)\n\(phone.text)")
      }
      try await gateway.finish()
    }

    @Test(.enabled(if: IPv6Only.missing == nil || Surroundings.isRequired, "\(IPv6Only.missing ?? "")"))
    func `a network with IPv6 only, behind NAT64: a call both ways with a gateway that has IPv4 only`() async throws {
      let network = IPv6Only()
      try await network.make()
      let gateway = try await network.gateway(IPv6Only.address)
      try EndlessTone.write(6, gateway.folder + "/tone.wav")
      let phone = try await network.phone(
        gateway, at: "gateway.example", ["--answer", "--calls", "1", "--play", "tone.wav", "--record", "app-heard.wav"])
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--talk", "4", "--play", "tone.wav", "--record", "trunk-heard.wav"])
      #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(phone.text)")
      _ = try await phone.finish(within: 10)
      for side in ["app", "trunk"] {
        let gaps = try EndlessTone.gaps(gateway.folder + "/\(side)-heard.wav")
        #expect(gaps.seconds > 3.5, "\(side) heard \(gaps.seconds) s of tone\n\(phone.text)")
      }
      try await gateway.finish()
    }
  }
}

/// 440 Hz at a tenth of full scale, and its gaps in a recording.
enum EndlessTone {
  static func write(_ seconds: Int, _ path: String) throws {
    try Speech.write((0..<8_000 * seconds).map { Int16(3_000 * sin(Double($0) * 2 * .pi * 440 / 8_000)) }, path)
  }

  /// How long the tone was heard, and the longest gap between its beginning and its end, in seconds.
  static func gaps(_ path: String) throws -> (seconds: Double, longest: Double) {
    let samples = try Speech.read(path)
    let frames = stride(from: 0, to: samples.count - 160, by: 160).map { start in
      samples[start..<start + 160].contains { abs(Int($0)) > 800 }
    }
    guard let first = frames.firstIndex(of: true), let last = frames.lastIndex(of: true) else { return (0, .infinity) }
    var (longest, run) = (0, 0)
    for isLoud in frames[first...last] {
      run = isLoud ? 0 : run + 1
      longest = max(longest, run)
    }
    return (Double(frames.count { $0 }) * 0.02, Double(longest) * 0.02)
  }
}

/// A telephone in its own network namespace, and a gateway that it reaches by TLS.
class PhoneNetwork {
  let namespace = "tlcell\(getpid())"
  /// Cable ends on the test's side.
  var cables: [String] { [] }
  private let folder = NSTemporaryDirectory()
  var certificate: String?

  class var missing: String? {
    getuid() != 0
      ? "no network namespaces: not root"
      : FileManager.default.isExecutableFile(atPath: "/sbin/ip") ? nil : "no /sbin/ip: run Scripts/install test"
  }

  /// A gateway whose app port and media are on `address`.
  func gateway(_ address: String) async throws -> GatewayUnderTest {
    let sip = try FreePorts.both()
    let app = try FreePorts.tcp()
    let admin = try FreePorts.tcp()
    let certificate = try await OpenSSL.certificate("gateway.example", alternatives: "IP:\(address)")
    self.certificate = certificate
    let tls = "tls: { cert: \(certificate)/sip.pem, key: \(certificate)/sip.key }"
    let listen =
      "listen: { sip: { udp: 127.0.0.1:\(sip), tcp: 127.0.0.1:\(sip) }, app: { address: \(address):\(app), \(tls) }, admin: 127.0.0.1:\(admin) }"
    return try await GatewayUnderTest([listen], media: "[ \(address), 127.0.0.1 ]", ports: (sip, app, admin))
  }

  func phone(_ gateway: GatewayUnderTest, at host: String, _ arguments: [String]) async throws -> Spawned {
    let token = try await gateway.token("alice", "cell")
    let phone = try Spawned(
      "phone", "/sbin/ip",
      [
        "netns", "exec", namespace, Surroundings.lab, "phone", "--url", "wss://\(host):\(gateway.app)/v1/connect", "--insecure",
        "--token", token, "--device", "cell", "--events",
      ] + arguments, in: gateway.folder)
    do { _ = try await phone.event("online") } catch {
      throw Spawned.Failure(description: "\(error)\n\(phone.text)\n\(gateway.process.text)")
    }
    return phone
  }

  @discardableResult func run(_ script: String) async throws -> String {
    let shell = try Spawned("network", "/bin/sh", ["-c", script], in: folder)
    guard try await shell.finish(within: 20) == 0 else { throw Spawned.Failure(description: shell.text) }
    return shell.text
  }

  /// Runs a command without waiting for a task: a deinit cannot.
  func runAtEnd(_ command: [String]) {
    var (status, pid): (Int32, pid_t) = (0, 0)
    let words = command.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    if posix_spawn(&pid, command[0], nil, nil, words, environ) == 0 { waitpid(pid, &status, 0) }
  }

  deinit {
    // the namespace removes what is left of a cable, but later
    for end in cables { runAtEnd(["/sbin/ip", "link", "del", end]) }
    if let certificate { try? FileManager.default.removeItem(atPath: certificate) }
    runAtEnd(["/sbin/ip", "netns", "del", namespace])
  }
}

/// Two paths to the gateway; the first is preferred while it is up.
private final class TwoNetworks: PhoneNetwork {
  /// The gateway's address on both. It is at neither cable: a telephone that leaves a network takes nothing from the gateway.
  static let address = "10.91.1.1"
  override var cables: [String] { ["tlwifi", "tlcell"] }

  func make() async throws {
    try await run(
      """
      set -e
      ip netns add \(namespace); ip -n \(namespace) link set lo up
      ip link add tlwifi type veth peer name wifi netns \(namespace); ip link add tlcell type veth peer name cell netns \(namespace)
      ip addr replace \(Self.address)/32 dev lo
      ip addr add 10.91.1.3/24 dev tlwifi; ip link set tlwifi up
      ip addr add 10.91.2.1/24 dev tlcell; ip link set tlcell up
      ip -n \(namespace) addr add 10.91.1.2/24 dev wifi; ip -n \(namespace) link set wifi up
      ip -n \(namespace) addr add 10.91.2.2/24 dev cell; ip -n \(namespace) link set cell up
      ip -n \(namespace) route add default via 10.91.2.1
      """)
  }

  deinit { runAtEnd(["/sbin/ip", "addr", "del", Self.address + "/32", "dev", "lo"]) }

  /// Disconnects or reconnects both networks, at the cables' other ends.
  func connect(_ isOn: Bool) async throws {
    try await run("for end in tlwifi tlcell; do ip link set $end \(isOn ? "up" : "down"); done")
  }

  /// Leaves the Wi-Fi: the telephone's address disappears with it.
  func leaveWiFi() async throws { try await run("ip -n \(namespace) addr flush dev wifi; ip -n \(namespace) link set wifi down") }
}

/// IPv6 only, with tayga as the translator (RFC 7915); the namespace's hosts file contains what DNS64 would answer.
private final class IPv6Only: PhoneNetwork {
  static let address = "10.92.0.1"
  override var cables: [String] { ["tlnat"] }
  private static let prefix = "2001:db8:64::"
  private var router: String { namespace + "nat" }
  private var translator: Spawned?

  override class var missing: String? {
    PhoneNetwork.missing
      ?? ["/usr/sbin/tayga", "/dev/net/tun"].first { !FileManager.default.fileExists(atPath: $0) }.map {
        "no \($0): run Scripts/install test"
      }
  }

  func make() async throws {
    let folder = "/etc/netns/\(namespace)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try "\(Self.prefix)\(Self.address) gateway.example\n\(Self.prefix)192.0.0.170 ipv4only.arpa\n".write(
      toFile: folder + "/hosts", atomically: true, encoding: .utf8)
    try "tun-device nat64\nipv4-addr 10.92.64.1\nipv6-addr 2001:db8:2::1\nprefix \(Self.prefix)/96\ndynamic-pool 10.92.64.0/24\n"
      .write(
        toFile: folder + "/tayga.conf", atomically: true, encoding: .utf8)
    try await run(
      """
      set -e
      ip netns add \(namespace); ip netns add \(router)
      ip link add tlnat type veth peer name world netns \(router)
      ip addr add \(Self.address)/24 dev tlnat; ip link set tlnat up; ip route add 10.92.64.0/24 via 10.92.0.2
      ip -n \(router) addr add 10.92.0.2/24 dev world; ip -n \(router) link set world up; ip -n \(router) link set lo up
      ip -n \(router) link add lan type veth peer name eth0 netns \(namespace)
      ip -n \(router) addr add 2001:db8:1::1/64 dev lan nodad; ip -n \(router) link set lan up
      ip -n \(namespace) link set lo up; ip -n \(namespace) addr add 2001:db8:1::2/64 dev eth0 nodad; ip -n \(namespace) link set eth0 up
      ip -n \(namespace) -6 route add default via 2001:db8:1::1
      ip netns exec \(router) sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
      ip netns exec \(router) tayga -c \(folder)/tayga.conf --mktun
      ip -n \(router) link set nat64 up; ip -n \(router) route add 10.92.64.0/24 dev nat64; ip -n \(router) -6 route add \(Self.prefix)/96 dev nat64
      """)
    translator = try Spawned(
      "tayga", "/sbin/ip", ["netns", "exec", router, "/usr/sbin/tayga", "-c", folder + "/tayga.conf", "-d"],
      in: NSTemporaryDirectory())
  }

  deinit {
    translator = nil
    runAtEnd(["/sbin/ip", "netns", "del", router])
    try? FileManager.default.removeItem(atPath: "/etc/netns/\(namespace)")
  }
}
