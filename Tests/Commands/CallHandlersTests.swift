import AppServer
import CallFlow
import Foundation
import Testing
import TrunklineAppProtocol
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession

@testable import trunkline

/// Bodies and idempotency keys of `/v1/calls`; `CallControlTests` tests their effect on calls.
@Suite struct CallPagesTests {
  private static let notice = Announcement(Recording([1, 2, 3]))
  private func command(_ word: String, _ body: String) -> Result<CallCommand, APIError> {
    do throws(APIError) {
      guard let action = CallHandlers.Action(rawValue: word) else { throw APIError(.unknownPage, word) }
      return .success(try CallHandlers.command(action, Array(body.utf8), { ["notice.wav": Self.notice] }))
    } catch {
      return .failure(error)
    }
  }

  @Test(
    arguments: [
      (#"{"user":"a","to":"1"}"#, nil, nil), (#"{"user":"a","to":"1","parameters":null}"#, nil, nil),
      (#"{"user":"a","to":"1","parameters":{"X-Ticket":"4711"}}"#, ["X-Ticket": "4711"], nil),
      (#"{"user":"a","to":"1","parameters":"x"}"#, nil, "an object of strings"),
      (#"{"user":"a","to":"1","parameters":{"bad name":"1"}}"#, nil, "not a name of a header field"),
      (#"{"user":"a","to":"1","parameters":{"A":"1\r\nB: 2"}}"#, nil, "control character"),
      (#"{"user":"a","to":"1","parameters":{"A":"1","a":"2"}}"#, nil, "twice"),
      (#"{"user":"a","to":"1","parameters":{"A":7}}"#, nil, "a JSON object of strings"),
      (#"{"user":"a","to":"1","parameters":{"A":"\#(String(repeating: "x", count: 1_100))"}}"#, nil, "bytes of 1024"),
      (#"{"user":{"a":"b"},"to":"1"}"#, nil, "user: a string"),
    ] as [(String, [String: String]?, String?)])
  func `a call that is made may have parameters, by the rules of call_start`(
    body: String, read: [String: String]?, problem: String?
  ) {
    do throws(APIError) {
      let wanted = try CallHandlers.wantedCall(Array(body.utf8))
      #expect(wanted.parameters?.values == read && problem == nil, "\(body)")
    } catch {
      #expect(problem.map { "\(error)".contains($0) } == true, "\(error)")
    }
  }

  @Test(
    arguments: [
      ("hangup", "", .hangUp(nil)), ("hangup", "{}", .hangUp(nil)), ("hangup", #"{"reason":null}"#, .hangUp(nil)),
      ("hangup", #"{"reason":"busy"}"#, .hangUp(.busy)), ("hold", #"{"on":true}"#, .hold(true)),
      ("mute", #"{"on":false}"#, .mute(false)),
      ("digits", #"{"digits":"12#"}"#, .digits(CallDTMF(digits: "12#"))),
      ("transfer", #"{"to":"+4930123"}"#, .transfer(CallTransfer(target: Handle(k: .phone, h: "+4930123")))),
      ("transfer", #"{"user":"bob"}"#, .transferToUser("bob")),
      (
        "transfer", #"{"call":"5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11"}"#,
        .transfer(CallTransfer(withCall: Identifier("5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11"), mode: .attended))
      ),
    ] as [(String, String, CallCommand)])
  func `a body is read`(word: String, body: String, expected: CallCommand) { #expect(command(word, body) == .success(expected)) }

  @Test(
    arguments: [
      ("hangup", #"{"reason":"gatewayRestart"}"#), ("hangup", #"{"reason":1}"#), ("hangup", #"{"why":"busy"}"#), ("hangup", "[]"),
      ("hangup", "{"), ("hold", ""), ("hold", "{}"), ("hold", #"{"on":1}"#), ("hold", #"{"on":"true"}"#), ("hold", #"{"on":{}}"#),
      ("mute", "null"), ("digits", #"{"digits":""}"#), ("digits", #"{"digits":"12a"}"#), ("digits", #"{"digits":12}"#),
      ("transfer", "{}"), ("transfer", #"{"to":"1","user":"b"}"#), ("transfer", #"{"call":"x"}"#), ("transfer", #"{"to":["1"]}"#),
      ("transfer", "{\"user\":\"\(String(repeating: "u", count: 257))\"}"),
      ("digits", "{\"digits\":\"\(String(repeating: "1", count: 65))\"}"),
      ("hold", "{\"on\":true}" + String(repeating: " ", count: 4_096)), ("hold", String(repeating: "[", count: 4_000)),
    ])
  func `an invalid body is a bad request`(word: String, body: String) {
    guard case .failure(let error) = command(word, body) else {
      Issue.record("\(body.prefix(80)) was taken")
      return
    }
    #expect(error.code == .badRequest)
  }

  @Test func `on as false stops the playing file; true alone, and on with a file, are refused`() {
    #expect(command("play", #"{"on":false}"#) == .success(.play(nil)))
    for body in [#"{"on":true}"#, #"{"on":false,"file":"notice.wav"}"#, "{}", #"{"file":null}"#] {
      guard case .failure(let error) = command("play", body) else {
        Issue.record("\(body) was taken")
        continue
      }
      #expect(error.code == .badRequest)
    }
  }

  @Test func `only what is in the folder is played, by its name`() {
    #expect(command("play", #"{"file":"notice.wav"}"#) == .success(.play(Self.notice)))
    for name in ["other.wav", "../notice.wav", "/etc/passwd", "./notice.wav", "notice.wav\u{0}", "NOTICE.WAV"] {
      let body = String(decoding: (try? JSONEncoder().encode(["file": name])) ?? Data(), as: UTF8.self)
      guard case .failure(let error) = command("play", body) else {
        Issue.record("\(name) was found")
        continue
      }
      #expect(error.code == .unknownFile, "\(name)")
    }
  }

  @Test(arguments: 0..<200) func `bytes of any kind are read or refused`(seed: UInt64) {
    let random = RandomSource.seeded(seed)
    let start = Array(#"{"on":true,"to":"#.utf8.prefix(Int(random.next() % 17)))
    let bytes = start + (0..<(random.next() % 64)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    for action in CallHandlers.Action.allCases {
      do {
        _ = try CallHandlers.command(action, bytes, { [:] })
      } catch {
        #expect(error.code == .badRequest)
      }
    }
    do {
      _ = try CallHandlers.wantedCall(bytes)
    } catch {
      #expect(error.code == .badRequest)
    }
  }

  @Test func `a call that is to be made names user and number, and who is called first`() throws {
    func wanted(_ body: String) -> OriginateRequest? { try? CallHandlers.wantedCall(Array(body.utf8)) }
    let made = OriginateRequest(user: "alice", to: "+4930123")
    #expect(
      wanted(#"{"user":"alice","to":"+4930123"}"#) == made && wanted(#"{"user":"alice","to":"+4930123","first":"user"}"#) == made)
    #expect(
      wanted(#"{"user":"alice","to":"+4930123","first":"number"}"#) == .init(user: "alice", to: "+4930123", first: .number))
    #expect(wanted(#"{"user":"alice","to":"1","from":"+2"}"#)?.from == "+2")
    for body in [
      #"{"user":"alice"}"#, #"{"to":"1"}"#, #"{"user":"alice","to":"1","first":"both"}"#, #"{"user":"alice","to":"1","x":"y"}"#,
    ] {
      #expect(wanted(body) == nil, "\(body)")
    }
  }

  // MARK: idempotency keys

  private func request(_ body: String, path: String = "/v1/calls", client: String = "crm") throws -> AdminRequest {
    try AdminRequest("POST", target: path, body: Array(body.utf8), client: client)
  }
  private func status(_ verdict: IdempotencyTable.Verdict) -> Int? {
    if case .answered(let response) = verdict { response.status } else { nil }
  }
  private func ticket(_ verdict: IdempotencyTable.Verdict) throws -> IdempotencyTable.Ticket {
    guard case .new(let ticket) = verdict else { throw APIError(.server, "no new request") }
    return ticket
  }
  private let now = Instant(nanoseconds: 1_000_000_000)

  @Test func `a repeat gets the first one's answer for a day, another request with its key is refused`() throws {
    let table = IdempotencyTable()
    let first = try ticket(table.begin("k", request("a"), at: now))
    #expect(try status(table.begin("k", request("a"), at: now)) == 409, "it is in flight")
    #expect(try status(table.begin("k", request("b"), at: now)) == 422)
    table.finish(first, .text(201, "made"))
    #expect(
      try status(table.begin("k", request("a"), at: now)) == 201 && status(try table.begin("k", request("b"), at: now)) == 422)
    #expect(try status(table.begin("k", request("a", path: "/v1/calls/x/hold"), at: now)) == 422)
    #expect(try status(table.begin("k", request("a", client: "other"), at: now)) == nil, "each token has its own keys")
    #expect(try status(table.begin("k", request("a"), at: now + .seconds(86_399))) == 201)
    #expect(try status(table.begin("k", request("b"), at: now + .seconds(86_400))) == nil, "a day is over")
  }

  @Test(arguments: [429, 500, 503]) func `a failure that may be temporary is not kept`(code: Int) throws {
    let table = IdempotencyTable()
    table.finish(try ticket(table.begin("k", request("a"), at: now)), .text(code, "later"))
    #expect(try status(table.begin("k", request("a"), at: now)) == nil)
  }

  @Test func `a refusal is kept`() throws {
    let table = IdempotencyTable()
    table.finish(try ticket(table.begin("k", request("a"), at: now)), .text(409, "no"))
    #expect(try status(table.begin("k", request("a"), at: now)) == 409)
  }

  @Test func `the table is bounded: the oldest keys go`() throws {
    let table = IdempotencyTable(capacity: 3)
    for number in 0..<10 {
      table.finish(try ticket(table.begin("k\(number)", request("a"), at: now)), .text(201, "\(number)"))
      #expect(table.count <= 3)
    }
    #expect(try (7..<10).map { status(try table.begin("k\($0)", request("b"), at: now)) } == [422, 422, 422])
    #expect(try status(table.begin("k6", request("b"), at: now)) == nil, "it is forgotten")
    // an answer that arrives after its key was removed is dropped
    let late = IdempotencyTable(capacity: 1)
    let old = try ticket(late.begin("a", request("a"), at: now))
    _ = try ticket(late.begin("b", request("b"), at: now))
    late.finish(old, .text(201, "late"))
    #expect(try late.count == 1 && status(late.begin("b", request("b"), at: now)) == 409)
  }

  @Test(arguments: ["", " ", "a b", "ä", "\u{7}", String(repeating: "k", count: 129)]) func `an invalid key is refused`(
    key: String
  ) throws {
    #expect(try status(IdempotencyTable().begin(key, request("a"), at: now)) == 400)
  }
}
