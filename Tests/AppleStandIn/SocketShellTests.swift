import AppleStandIn
import Foundation
import Testing
import TrunklineBytes

/// Frames between an app's process and a handset, and rules from a file.
@Suite struct SocketShellTests {
  private static let call = Identifier(high: 1, low: 2)
  private static let app: [AppMessage] = [
    .launched(process: 7), .wantsPushes, .report(call, .init("+1555", name: "Jane \"J\"\n"), isOnQueue: true),
    .ended(call, .remoteEnded, at: Date(timeIntervalSince1970: 5)), .request(3, [.start(call, .init("x")), .group(call, nil)]),
    .complete(4, isFulfilled: false, at: nil), .violation(.r30, "two"), .provider(ProviderFacts()),
  ]
  private static let phone: [PhoneMessage] = [
    .token([1, 2]), .push(1, payload: #"{"a":"b"}"#, mustReport: false), .reported(call, error: 3), .reported(call, error: nil),
    .perform(1, .translate(call, true, from: "de", to: "en"), until: Date(timeIntervalSince1970: 9)),
    .route(.bluetooth, sampleRate: 0),
  ]

  @Test(arguments: [1, 2, 7, 64, 100_000]) func `any split of the stream gives the same messages`(size: Int) throws {
    func through<M: Codable & Equatable>(_ messages: [M]) throws -> [M] {
      let bytes = messages.compactMap { MessageLines.line($0) }.flatMap { $0 }
      var (lines, out) = (MessageLines(), [M]())
      for start in stride(from: 0, to: bytes.count, by: size) {
        out += try lines.append(bytes[start..<min(bytes.count, start + size)], as: M.self)
      }
      return out
    }
    #expect(try through(Self.app) == Self.app)
    #expect(try through(Self.phone) == Self.phone)
  }

  @Test func `what is no message is counted; a line that is too long ends the stream`() throws {
    var lines = MessageLines()
    let noise = Array("\u{0}\u{ff}{}\n[[[[\n\n{\"launched\":{}}\n{\"wantsPushes\":{}}\n".utf8)
    #expect(try lines.append(noise, as: AppMessage.self) == [.wantsPushes] && lines.unknown == 4)
    #expect(try lines.append([UInt8](repeating: 120, count: MessageLines.limit), as: AppMessage.self) == [])
    #expect(throws: MessageLines.TooLong.self) { try lines.append([120], as: AppMessage.self) }
    #expect(MessageLines.line(AppMessage.violation(.r1, String(repeating: "x", count: MessageLines.limit))) == nil)
  }

  @Test func `two ends of a socket hear each other until one is gone`() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("s-\(UUID().uuidString.prefix(8))").path
    let listener = try #require(UnixSocket.listen(path))
    defer { unlink(path) }
    #expect(UnixSocket.listen(path) == nil, "it is taken")
    let app = try #require(UnixSocket(path: path))
    let phone = UnixSocket(owning: accept(listener, nil, nil))
    #expect(app.write([1, 2, 3]) && phone.read() == [1, 2, 3])
    phone.end()
    #expect(app.read() == [])
    close(listener)
    #expect(UnixSocket(path: path) == nil && UnixSocket(path: String(repeating: "x", count: 200)) == nil)
  }

  @Test func `rules are read from a file; an unknown name and a wrong value are refused by name`() throws {
    let rules = try SystemRules(
      json: Data(#"{"reportTime":0.5,"activationTime":null,"muteBursts":2,"mustReport":"atRandom","blocked":["x"]}"#.utf8))
    #expect(rules.reportTime == .milliseconds(500) && rules.activationTime == nil && rules.muteBursts == 2)
    #expect(rules.mustReport == .atRandom && rules.blocked == ["x"] && rules.ringTime == .seconds(60))
    for (json, word) in [
      (#"{"ringtime":1}"#, "ringtime"), (#"{"ringTime":-1}"#, "ringTime"), ("[]", "object"), (#"{"microphone":"x"}"#, "x"),
    ] {
      let problem = #expect(throws: SystemRules.FileProblem.self) { try SystemRules(json: Data(json.utf8)) }
      #expect(problem?.description.contains(word) == true)
    }
    #expect(SystemRules.names.count == Mirror(reflecting: SystemRules.strict).children.count, "a rule has no name in files")
  }
}
