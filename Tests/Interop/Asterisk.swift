import Foundation
import Testing

/// Asterisk of Debian sid as a foreign PBX and carrier, in the root folder that `Scripts/install test` makes. Each endpoint has
/// its own loopback address, by which the gateway's trunks are told apart.
final class Asterisk {
  struct Endpoint {
    var name: String
    var address: String
    /// Codecs in Asterisk's notation.
    var codecs: String
    /// Further lines of the endpoint in pjsip.conf.
    var more: [String] = []
    /// The endpoint registers, and its calls are challenged.
    var hasPassword = false
    var isTLS = false
    /// `direct_media=yes`: each of a bridge's two legs gets the other's RTP address.
    var sendsMediaDirectly = false
  }

  static let root = Surroundings.package + "/.build/asterisk/root"
  /// Why the suite cannot run; nil if it can.
  static let missing: String? =
    getuid() != 0
    ? "Asterisk runs in a chroot: not root"
    : FileManager.default.isExecutableFile(atPath: root + "/usr/sbin/asterisk")
      ? nil : "no Asterisk: Scripts/install test makes it with mmdebstrap, where that can fetch Debian sid"

  let process: Spawned
  /// The folder's path inside Asterisk's root, and outside.
  private let inside: String
  let folder: String
  let port: UInt16

  /// `gateway`: the target of its calls. `tls`: the gateway's port for endpoints with TLS, and a folder with `sip.pem` and
  /// `sip.key`.
  init(_ endpoints: [Endpoint], gateway: GatewayUnderTest, port: UInt16, tls: (port: UInt16, certificate: String)? = nil)
    async throws
  {
    inside = "/run/trunkline-\(UUID().uuidString.prefix(8))"
    folder = Self.root + inside
    self.port = port
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    if let certificate = tls?.certificate {
      for name in ["sip.pem", "sip.key"] {
        try FileManager.default.copyItem(atPath: certificate + "/" + name, toPath: folder + "/" + name)
      }
    }
    try Speech.write(Baresip.short, folder + "/telephone.wav")
    for (name, text) in Self.files(inside, endpoints, gateway, port, tls?.port) {
      try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
    }
    // without these lines it queries a name server for its own address at each call; the other name is for OperatorTests, which
    // may run at the same time
    try "127.0.0.1 localhost \(ProcessInfo.processInfo.hostName) A.ROOT-SERVERS.NET\n203.0.113.5 sbc.example.com\n"
      .write(toFile: Self.root + "/etc/hosts", atomically: true, encoding: .utf8)
    process = try Spawned(
      "asterisk", "/usr/sbin/chroot", [Self.root, "/usr/sbin/asterisk", "-f", "-n", "-C", inside + "/asterisk.conf"],
      in: gateway.folder)
    let isUp = await eventually(within: 30) { (try? self.said("core waitfullybooted"))?.contains("fully booted") == true }
    guard isUp else {
      throw Spawned.Failure(description: "Asterisk is not up: \(process.text.suffix(6_000)) \(log.suffix(2_000))")
    }
  }

  /// Debian's module folder, whose path has the architecture's name.
  private static var modules: String {
    let folders = (try? FileManager.default.contentsOfDirectory(atPath: root + "/usr/lib")) ?? []
    let found = folders.map { "/usr/lib/\($0)/asterisk/modules" }.first { FileManager.default.fileExists(atPath: root + $0) }
    return found ?? "/usr/lib/asterisk/modules"
  }

  private static func files(
    _ inside: String, _ endpoints: [Endpoint], _ gateway: GatewayUnderTest, _ port: UInt16, _ tls: UInt16?
  )
    -> [String: String]
  {
    let folders = ["astetcdir", "astdbdir", "astspooldir", "astrundir", "astlogdir", "astkeydir", "astagidir"].map {
      "\($0) => \(inside)"
    }
    let own = [
      "astmoddir => \(modules)", "astvarlibdir => /var/lib/asterisk",
      "astdatadir => /usr/share/asterisk",
    ]
    return [
      "asterisk.conf": "[directories]\n" + (folders + own).joined(separator: "\n") + "\n[options]\nverbose = 4\n",
      // without modules that need further files or ports
      "modules.conf": "[modules]\nautoload = yes\n"
        + [
          "chan_iax2", "chan_unistim", "pbx_dundi", "chan_skinny", "chan_mgcp", "res_http_media_cache", "res_xmpp",
          "cdr_sqlite3_custom", "chan_mobile", "res_hep_rtcp", "pbx_ael", "pbx_lua",
        ]
        .map { "noload = \($0).so\n" }.joined(),
      "logger.conf": "[logfiles]\nfull => notice,warning,error,verbose\n",
      "rtp.conf": "[general]\nrtpstart=30000\nrtpend=30999\n",
      "extensions.conf": """
      [calls]
      exten => _+1555999XXXX,1,Answer()
       same => n,MixMonitor(\(inside)/mixed-${EXTEN}.wav,r(\(inside)/heard-${EXTEN}.wav))
       same => n,Playback(\(inside)/telephone)
       same => n,Wait(1)
       same => n,Hangup()
      exten => _+1555888XXXX,1,Answer()
       same => n,Read(DIGITS,,4,,1,8)
       same => n,Verbose(1,got ${CHANNEL(endpoint)} ${DIGITS})
       same => n,Hangup()
      exten => _+1555666XXXX,1,Answer()
       same => n,MixMonitor(\(inside)/mixed-${EXTEN}.wav,r(\(inside)/heard-${EXTEN}.wav))
       same => n,Wait(300)
      exten => passage,1,Playback(\(inside)/passage)
       same => n,Wait(300)
      exten => pcpid,1,Set(PJSIP_HEADER(add,P-Called-Party-ID)=<sip:+15551230001@127.0.0.6>)
       same => n,Return()
      exten => registered,1,Dial(PJSIP/reg,20,b(calls^pcpid^1))
      exten => _+1555777100X,1,Dial(PJSIP/+1555123000${EXTEN:-1}@far,20)
      exten => digits,1,Answer()
       same => n,Wait(0.5)
       same => n,SendDTMF(1259,150,150)
       same => n,Wait(0.5)
       same => n,Hangup()
      exten => transfer,1,Answer()
       same => n,Wait(1)
       same => n,Transfer(PJSIP/sip:+15559990901@127.0.0.1:\(gateway.sip))
       same => n,Verbose(1,transfer ${TRANSFERSTATUS})
       same => n,Hangup()

      """,
      "pjsip.conf": endpoints.map { text($0, inside, gateway, port, tls) }.joined(separator: "\n"),
    ]
  }

  private static func text(_ endpoint: Endpoint, _ inside: String, _ gateway: GatewayUnderTest, _ port: UInt16, _ tls: UInt16?)
    -> String
  {
    let (name, address) = (endpoint.name, endpoint.address)
    let transport =
      endpoint.isTLS
      ? "protocol=tls\nbind=\(address):\(port)\ncert_file=\(inside)/sip.pem\npriv_key_file=\(inside)/sip.key\nmethod=tlsv1_2"
      : "protocol=udp\nbind=\(address):\(port)"
    let contact =
      endpoint.isTLS
      ? tls.map { "sip:127.0.0.1:\($0);transport=tls" } : endpoint.hasPassword ? nil : "sip:127.0.0.1:\(gateway.sip)"
    return """
      [transport-\(name)]
      type=transport
      \(transport)
      [\(name)]
      type=endpoint
      context=calls
      transport=transport-\(name)
      disallow=all
      allow=\(endpoint.codecs)
      aors=\(name)
      direct_media=\(endpoint.sendsMediaDirectly ? "yes" : "no")
      moh_passthrough=yes
      identify_by=username
      media_address=\(address)
      \((endpoint.more + (endpoint.hasPassword ? ["auth=\(name)"] : [])).joined(separator: "\n"))
      [\(name)]
      type=aor
      max_contacts=1
      remove_existing=yes
      minimum_expiration=10
      \(contact.map { "contact=\($0)" } ?? "")
      [\(name)]
      type=auth
      auth_type=userpass
      username=\(name)
      password=s3cret

      """
  }

  /// Returns the console's answer.
  func said(_ command: String) throws -> String {
    let console = Process()
    console.executableURL = URL(fileURLWithPath: "/usr/sbin/chroot")
    console.arguments = [Self.root, "/usr/sbin/asterisk", "-C", inside + "/asterisk.conf", "-rx", command]
    let output = Pipe()
    (console.standardOutput, console.standardError, console.standardInput) = (output, output, FileHandle.nullDevice)
    try console.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    console.waitUntilExit()
    return text
  }

  /// Moves the endpoint's only call to another extension.
  func redirect(_ endpoint: String, to extension: String) throws {
    let rows = try said("core show channels concise").split(separator: "\n").map { $0.prefix { $0 != "!" } }
    guard let channel = rows.first(where: { $0.hasPrefix("PJSIP/\(endpoint)-") }) else {
      throw Spawned.Failure(description: "\(endpoint) has no call: \(rows)")
    }
    _ = try said("channel redirect \(channel) calls,\(`extension`),1")
  }

  var log: String { (try? String(contentsOfFile: folder + "/full", encoding: .utf8)) ?? "" }

  /// The path of the audio received in a call to `number`.
  func heard(_ number: String) -> String { folder + "/heard-\(number).wav" }

  func stop() async throws {
    _ = try? said("core stop now")
    _ = try await process.finish(within: 15)
    try FileManager.default.removeItem(atPath: folder)
  }
}
