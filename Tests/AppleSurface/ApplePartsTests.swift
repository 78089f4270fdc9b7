import Foundation
import Testing

/// The SDK's Apple-only parts, run over the surfaces: what they set and call, and what becomes of a refusal. Not what Apple's frameworks do.
@Suite struct ApplePartsTests {
  private static let outcome = Result { try SurfaceBuild.shared.get().run("parts", with: ["TrunklineClient"]) }

  private func expect(_ lines: [String]) throws {
    let outcome = try Self.outcome.get()
    try #require(outcome.status == 0, "\(outcome.text)")
    let printed = outcome.text.components(separatedBy: "\n")
    for line in lines { #expect(printed.contains(line), "no \"\(line)\" in:\n\(outcome.text)") }
  }

  @Test func `the voice unit carries both directions in slices of any size, and plays silence for what is not there`() throws {
    try expect([
      "start before configure: false", "configure: true, start: true, running: 1",
      "slice of 85: (captured: true, played: 42)", "slice of 160: (captured: true, played: 80)",
      "slice of 171: (captured: true, played: 85)", "slice of 512: (captured: true, played: 256)", "too long a slice: true",
    ])
  }

  @Test func `the voice unit's callbacks allocate nothing`() throws { try expect(["1,000 slices, mallocs: 0"]) }

  @Test func `AUD-4: a stopped unit calls back no more, and each that was made is disposed of once`() throws {
    try expect([
      "stopped: 0 -1, made 1, disposed 1", "start again: true, (captured: true, played: 80)", "released: 0, made 2, disposed 2",
    ])
  }

  @Test func `a unit that refuses any of the calls is a start that failed, and nothing is left`() throws {
    try expect((1...8).map { "call \($0) refused: true, left: 0" })
  }

  @Test func `without CallKit the unit has the audio session, and starts anew on another rate and after a reset`() throws {
    try expect([
      "own session: true AVAudioSessionCategoryPlayAndRecord AVAudioSessionModeVoiceChat, start: true", "same route: left alone",
      "media services reset: anew", "interruption over: anew", "other rate: anew, 8000.0 Hz",
      "after the release: left alone, left: 0",
    ])
  }

  @Test func `secrets are items of the keychain for this device, from the first unlock on`() throws {
    try expect([
      "keychain: nil true [1, 2]", "written over: true [3], other service: nil", "after first unlock, this device: true",
      "locked: nil false false", "deleted: true nil, again: false",
    ])
  }

  @Test func `a path is told when it is another, not when it is told again`() throws {
    let changes = try Self.outcome.get().text.components(separatedBy: "\n").filter { $0 == "path changed" }
    #expect(changes.count == 2)
    try expect(["monitor cancelled: true"])
  }

  @Test func `a second socket goes over the kind of interface that the default route is not, and closes once`() throws {
    let url = "TLS for the host, no delay, to wss://phone.example.com/v1/connect"
    let text = "text protocolCode(Network.NWProtocolWebSocket.CloseCode.Defined.noStatusReceived)"
    try expect([
      "no alternate for https: true",
      #"peer: ["trunkline.v1"] over cellular, \#(url)"#, #"own: ["trunkline.v1"] over wifi, \#(url)"#,
      "alternate peer: opened", "peer given: true", "alternate peer: received([91, 93])", "alternate peer: closed(4009, nil)",
      "peer frames: [\"\(text)\"], cancelled: 1",
      "alternate own: closed(1000, nil)", "alternate binary: closed(1003, nil)",
      #"alternate refused: closed(1006, Optional("no interface"))"#,
    ])
    let lines = try Self.outcome.get().text.components(separatedBy: "\n")
    let ends = lines.count { $0.hasPrefix("alternate") && $0.contains("closed(") }
    #expect(ends == 4)
  }

  @Test func `a TURN server is spoken to over UDP, TCP and TLS for its name, and what waits goes before the end`() throws {
    try expect([
      "udp is UDP to 192.0.2.7:443", "tcp is TCP, no delay to 192.0.2.7:443",
      "tls is TLS for turn.example.com, no delay to 192.0.2.7:443",
    ])
    for transport in ["udp", "tcp", "tls"] {
      try expect([
        "\(transport): opened", "\(transport): received([2, 3])", "\(transport) given: true true", "\(transport): received([4])",
        "\(transport) sent: 64, cancelled: 0", "\(transport) when all is sent, cancelled: 1", "\(transport): closed(\"closed\")",
      ])
    }
  }

  @Test func `a TURN server that is not there, or goes, is told once, and there are only so many`() throws {
    try expect([
      "refused: closed(\"refused\")", "refused, cancelled: true, in use: true", "reset: closed(\"reset\")",
      "reset, cancelled: true, in use: true", "ended: opened", "ended: closed(\"the server has ended it\")",
      "ended, cancelled: true, in use: true", "no port: true, at once: 24",
    ])
    #expect(try !Self.outcome.get().text.contains("late"))
  }

  @Test func `an address that is none is a socket that closes, and no exception of URLSession`() throws {
    let text = try Self.outcome.get().text
    for address in ["", "phone.example.com", "https://phone.example.com/v1/connect", "wss://", "wss:// /"] {
      #expect(
        text.contains("\n\(address): closed(1006, Optional(\"\(address): a ws:// or wss:// address is wanted\"))\n"), "\(text)")
    }
    try expect(["done"])
  }

  @Test func `a decline without a socket is one POST with the push's token, and a connection that fails is a socket that closes`()
    throws
  {
    try expect([
      "posted POST /v1/calls/x/reject HTTP/1.1", "posted Authorization: Bearer wake", "posted Content-Type: application/json",
      "posted Content-Length: 21", #"posted {"reason":"declined"}"#, "socket closed 1006, with a reason",
    ])
  }
}
