import Testing
import TrunklineAppProtocol
import TrunklineBytes

func frame(_ text: String) throws -> ClientFrame { try ClientFrame(decoding: Array(text.utf8)) }
func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
let callText = "6f9619ff-8b86-d011-b42d-00cf4fc964ff"
let call = Identifier(high: 0x6f96_19ff_8b86_d011, low: 0xb42d_00cf_4fc9_64ff)

@Suite struct FrameTests {
  @Test func `an answer is read with its envelope`() throws {
    let read = try frame(
      #"{"t":"call.answer","id":"\#(callText.uppercased())","seq":3,"ack":7,"call":"\#(callText)","#
        + #""d":{"ageMs":120,"x":{"y":1}},"z":[]}"#)
    #expect(read == ClientFrame(.callAnswer(CallAnswer(ageMs: 120)), id: call, seq: 3, ack: 7, call: call))
  }

  @Test func `d may be absent when every field of it is optional`() throws {
    let read = try frame(#"{"t":"call.end","id":"\#(callText)","seq":1,"call":"\#(callText)"}"#)
    #expect(read.body == .message(.callEnd(CallEnd(reason: .localEnd))))
    let bare = try frame(#"{"t":"call.prepare","id":"\#(callText)","seq":1,"call":"\#(callText)"}"#)
    #expect(bare.body == .malformed(.callPrepare, "d.sdp: missing"))
  }

  @Test(arguments: [
    ("", CallRinging()), (#","d":{}"#, CallRinging()), (#","d":null"#, CallRinging()), (#","d":[1]"#, CallRinging()),
    (#","d":7"#, CallRinging()), (#","d":{"pushMs":0,"reportMs":600000}"#, CallRinging(pushMs: 0, reportMs: 600_000)),
    (#","d":{"pushMs":-1,"reportMs":600001,"openMs":5}"#, CallRinging(openMs: 5)),
    (#","d":{"pushMs":"9","reportMs":1.5,"openMs":null}"#, CallRinging()), (#","d":{"openMs":1e300,"x":1}"#, CallRinging()),
    (#","d":{"pushMs":true,"openMs":99999999999999999999999}"#, CallRinging()),
  ])
  func `call-ringing counts whatever it measured; what cannot be is left out`(d: String, expected: CallRinging) throws {
    let read = try frame(#"{"t":"call.ringing","seq":1,"call":"\#(callText)"\#(d)}"#)
    #expect(read == ClientFrame(.callRinging(expected), seq: 1, call: call))
  }

  @Test func `call-ringing without measurements has no d`() {
    #expect(!text(ClientFrame(.callRinging(CallRinging()), seq: 1, call: call).encoded()).contains(#""d""#))
  }

  @Test(arguments: [
    ("localEnd", CallEnd.Reason.localEnd), ("mediaFailed", .mediaFailed), ("appRestart", .appRestart), ("busy", .localEnd),
    ("", .localEnd), ("remoteHangup", .localEnd), ("LocalEnd", .localEnd),
  ])
  func `a call-end ends the call whatever its reason; one that is not known is localEnd`(
    reason: String, expected: CallEnd.Reason
  ) throws {
    let read = try frame(
      #"{"t":"call.end","id":"\#(callText)","seq":1,"call":"\#(callText)","d":{"reason":"\#(reason)"}}"#)
    #expect(read.body == .message(.callEnd(CallEnd(reason: expected))))
    let wrong = try frame(#"{"t":"call.end","id":"\#(callText)","seq":1,"call":"\#(callText)","d":{"reason":5}}"#)
    #expect(wrong.body == .malformed(.callEnd, "d.reason: wrong type"))
  }

  @Test func `what is no object, too deep or without t ends the connection with 1007`() throws {
    let deep = #"{"t":"ping","d":"# + String(repeating: "[", count: 16) + String(repeating: "]", count: 16) + "}"
    for bad in [
      "", " ", "[]", "1", #""t""#, "null", "{", #"{"t":"ping"}x"#, #"{"t":"ping""#, #"{"t":1}"#, #"{"t":""}"#, #"{"id":"x"}"#,
      "{}",
      #"{"t":"ping\#u{0}"}"#, deep, "{\"t\":\"ping\",}",
    ] {
      let error = #expect(throws: FrameError.self) { try frame(bad) }
      #expect(error?.closeCode == .malformed, "\(bad)")
    }
    #expect(throws: FrameError.notAnObject) {
      try ClientFrame(decoding: Array(#"{"t":"pi"#.utf8) + [0xff] + Array(#"ng"}"#.utf8))
    }
  }

  @Test func `sixteen levels are read, brackets inside texts do not count`() throws {
    let deep = #"{"t":"ping","d":"# + String(repeating: "[", count: 15) + String(repeating: "]", count: 15) + "}"
    #expect(try frame(deep).body == .message(.ping))
    #expect(try frame(#"{"t":"ping","d":"\"[[[[[[[[[[[[[[[[[[[[[[[\\"}"#).body == .message(.ping))
  }

  @Test func `64 KiB are read, one byte more is 1009`() throws {
    let head = #"{"t":"ping","d":""#
    let fits = head + String(repeating: "a", count: 65_536 - head.utf8.count - 2) + #""}"#
    #expect(try frame(fits).body == .message(.ping))
    let error = #expect(throws: FrameError.self) { try frame(fits + " ") }
    #expect(error == .tooBig(65_537))
    #expect(error?.closeCode == .tooBig)
  }

  @Test func `an unknown type keeps its envelope`() throws {
    let read = try frame(#"{"t":"call.fly","id":"\#(callText)","seq":9}"#)
    #expect(read.body == .unknown("call.fly"))
    #expect(read.id == call && read.seq == 9)
  }

  @Test(arguments: [
    (#""seq":0"#, "seq"), (#""seq":-1"#, "seq"), (#""seq":1.5"#, "seq"), (#""seq":"1""#, "seq"), (#""seq":1e300"#, "seq"),
    (#""seq":99999999999999999999999"#, "seq"), (#""seq":null"#, "seq"), (#""x":1"#, "seq"), (#""seq":1,"ack":-1"#, "ack"),
  ])
  func `a number outside its range makes the message malformed and keeps the id`(fields: String, field: String) throws {
    let read = try frame(#"{"t":"call.end","id":"\#(callText)","call":"\#(callText)",\#(fields)}"#)
    guard case .malformed(.callEnd, let rule) = read.body else {
      Issue.record("read as \(read.body)")
      return
    }
    #expect(rule.hasPrefix(field))
    #expect(read.id == call)
  }

  @Test func `a request without id, a call message without call are malformed`() throws {
    #expect(try frame(#"{"t":"call.end","seq":1,"call":"\#(callText)"}"#).body == .malformed(.callEnd, "id: missing"))
    #expect(try frame(#"{"t":"call.ringing","seq":1}"#).body == .malformed(.callRinging, "call: missing"))
    #expect(try frame(#"{"t":"call.ringing","seq":1,"call":"7"}"#).call == nil)
  }

  @Test func `hello holds exactly one proof`() throws {
    let device = #""device":{"id":"d1"}"#
    func hello(_ d: String) throws -> ClientFrame { try frame(#"{"t":"hello","id":"\#(callText)","d":{\#(d)}}"#) }
    #expect(try hello(#""auth":"a.b.c",\#(device)"#).body == .message(.hello(Hello(.auth("a.b.c"), device: .init(id: "d1")))))
    // a closed keychain: the id may be empty with a wake token, but not with another proof
    #expect(try hello(#""wake":"w","device":{"id":""}"#).body == .message(.hello(Hello(.wake("w"), device: .init(id: "")))))
    for bad in [
      #""auth":"a.b.c","device":{"id":""}"#, #""wake":"w","device":{}"#,
      device, #""auth":"a","wake":"b",\#(device)"#, #""auth":"a""#, #""auth":"",\#(device)"#, #""auth":7,\#(device)"#,
    ] {
      guard case .malformed(.hello, _) = try hello(bad).body else {
        Issue.record("accepted \(bad)")
        continue
      }
    }
  }

  @Test(arguments: [
    (#""digits":"12*#ABCD""#, true), (#""digits":"""#, false), (#""digits":"e""#, false),
    (#""digits":"1","durMs":39"#, false),
    (#""digits":"1","durMs":6000,"gapMs":1000"#, true), (#""digits":"1","gapMs":1001"#, false), (#""continue":true"#, true),
    (#""digits":"\#(String(repeating: "1", count: 65))""#, false),
  ])
  func `digits are checked`(fields: String, legal: Bool) throws {
    let read = try frame(#"{"t":"call.dtmf","id":"\#(callText)","seq":1,"call":"\#(callText)","d":{\#(fields)}}"#)
    if case .message = read.body { #expect(legal) } else { #expect(!legal) }
  }

  @Test func `every bound on a field makes the message malformed one step beyond it`() throws {
    func isRead(_ type: String, _ d: String) throws -> Bool {
      let read = try frame(#"{"t":"\#(type)","id":"\#(callText)","seq":1,"call":"\#(callText)","d":{\#(d)}}"#)
      if case .message = read.body { return true }
      return false
    }
    func a(_ n: Int) -> String { String(repeating: "a", count: n) }
    func list(_ n: Int) -> String { "[" + Array(repeating: #""c""#, count: n).joined(separator: ",") + "]" }
    let rows: [(String, String, String)] = [
      ("hello", #""auth":"\#(a(8_192))","device":{"id":"d"}"#, #""auth":"\#(a(8_193))","device":{"id":"d"}"#),
      ("hello", #""auth":"x","device":{"id":"\#(a(256))"}"#, #""auth":"x","device":{"id":"\#(a(257))"}"#),
      (
        "hello", #""auth":"x","device":{"id":"d"},"caps":\#(list(64))"#,
        #""auth":"x","device":{"id":"d"},"caps":\#(list(65))"#
      ),
      ("auth.refresh", #""auth":"\#(a(8_192))""#, #""auth":"\#(a(8_193))""#),
      ("call.answer", #""ageMs":86400000,"timeoutMs":0"#, #""ageMs":86400001"#), ("call.answer", #""gen":1"#, #""gen":0"#),
      ("call.prepare", #""sdp":"v","gen":1000000"#, #""sdp":"v","gen":1000001"#),
      ("call.start", #""sdp":"v","to":{"k":"phone","h":"\#(a(256))"}"#, #""sdp":"v","to":{"k":"phone","h":"\#(a(257))"}"#),
      ("call.start", #""sdp":"v","to":{"k":"email","h":"a"}"#, #""sdp":"v","to":{"k":"fax","h":"a"}"#),
    ]
    for (type, within, beyond) in rows {
      #expect(try isRead(type, within), "\(type) \(within.prefix(40))")
      #expect(try !isRead(type, beyond), "\(type) \(beyond.prefix(40))")
    }
  }

  @Test func `every bound on a field of many nodes makes the message malformed one step beyond it`() throws {
    func isRead(_ type: String, _ d: String) throws -> Bool {
      let read = try ServerFrame(
        decoding: Array(#"{"t":"\#(type)","re":"\#(callText)","call":"\#(callText)","d":{\#(d)}}"#.utf8))
      if case .message = read.body { return true }
      return false
    }
    func a(_ n: Int) -> String { String(repeating: "a", count: n) }
    let welcome =
      #""sid":"s","resumeToken":"r","resumed":true,"replayFrom":1,"time":0,"hb":1,"ice":[],"dirVersion":0,"caps":[]"#
    func wake(_ d: String) -> String { #""v":1,"t":"call","call":"\#(callText)","exp":1,"acct":"a",\#(d)"# }
    let rows: [(String, String, String)] = [
      ("welcome", welcome + #","node":"\#(a(256))""#, welcome + #","node":"\#(a(257))""#),
      ("welcome", welcome + #","url":"\#(a(2_048))""#, welcome + #","url":"\#(a(2_049))""#),
      ("welcome", welcome + #","spreadMs":86400000"#, welcome + #","spreadMs":86400001"#),
      ("welcome", welcome + #","spreadMs":0"#, welcome + #","spreadMs":-1"#),
      ("bye", #""url":"\#(a(2_048))","afterMs":86400000"#, #""url":"\#(a(2_049))""#), ("bye", "", #""afterMs":-1"#),
      ("err", #""code":"overload","url":"\#(a(2_048))""#, #""code":"overload","url":"\#(a(2_049))""#),
      ("call.wake", wake(#""gw":"\#(a(2_048))","wake":"w""#), wake(#""gw":"\#(a(2_049))","wake":"w""#)),
      ("call.wake", wake(#""gw":"g","wake":"\#(a(8_192))""#), wake(#""gw":"g","wake":"\#(a(8_193))""#)),
      ("call.wake", wake(#""gw":"g","wake":"w""#), wake(#""gw":"g""#)), ("call.wake", wake(#""gw":"g","wake":"w""#), ""),
    ]
    for (type, within, beyond) in rows {
      #expect(try isRead(type, within), "\(type) \(within.prefix(40))")
      #expect(try !isRead(type, beyond), "\(type) \(beyond.prefix(40))")
    }
  }

  @Test func `a server frame is written with sorted keys and read back`() throws {
    let out = ServerFrame(.callEnded(CallOver(.unanswered, by: .trunk, at: 12, sip: 480)), seq: 4, ack: 2, call: call)
    let json =
      #"{"ack":2,"call":"\#(callText)","d":{"at":12,"by":"trunk","reason":"unanswered","sip":480},"seq":4,"t":"call.ended"}"#
    #expect(text(out.encoded()) == json)
    #expect(try ServerFrame(decoding: out.encoded()) == out)
    #expect(text(ServerFrame(.ok(Success()), re: call).encoded()) == #"{"re":"\#(callText)","t":"ok"}"#)
  }

  @Test(arguments: [
    (#""t":"call.gone","call":"\#(callText)""#, "seq: missing"), (#""t":"call.gone","seq":1"#, "call: missing"),
    (#""t":"ok","seq":1"#, "re: missing"), (#""t":"quality""#, "call: missing"),
  ])
  func `a server message without what its row asks for is malformed`(fields: String, rule: String) throws {
    let read = try ServerFrame(decoding: Array(#"{\#(fields),"d":{"reason":"busy","level":"bad"}}"#.utf8))
    guard case .malformed(_, rule) = read.body else {
      Issue.record("read as \(read.body)")
      return
    }
  }

  @Test func `a reason or error code of a later version is read as unknown and server`() throws {
    let over = try ServerFrame(
      decoding: Array(#"{"t":"call.gone","seq":1,"call":"\#(callText)","d":{"reason":"abducted"}}"#.utf8))
    #expect(over.body == .message(.callGone(CallOver(.unknown))))
    let failure = try ServerFrame(decoding: Array(#"{"t":"err","d":{"code":"tired"}}"#.utf8))
    #expect(failure.body == .message(.err(Failure(.server))))
  }
}
