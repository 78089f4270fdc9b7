import AppSessions
import HTTP
import JSONWebToken
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = DeviceKey(user: "carol", device: "phone")
private let number = "+15557000001"

/// Users that the operator's server knows and no file lists.
@Suite struct UserSourceTests {
  private static let source = UserSource(Webhook(url: "http://127.0.0.1/users", key: Redacted([1])), cache: .seconds(60))

  private func world(
    bounds: (calls: Int, ofUser: Int)? = nil, _ configure: @escaping (inout Routing) -> Void = { _ in }
  ) -> Surroundings {
    Surroundings { configuration, routing in
      if let bounds { (configuration.bounds.calls, configuration.bounds.callsPerUser) = bounds }
      routing.directory = UserDirectory(routing.users, anyone: .init(id: "", numbers: []))
      routing.userSource = Self.source
      configure(&routing)
    }
  }

  private func known(_ world: Surroundings, _ question: UserQuestion, _ user: String = "carol", _ numbers: [String] = [number]) {
    world.feed(.userKnown(question, .found(user: user, TokenGrant(numbers: numbers))))
  }

  /// Carol's phone, whose user was asked for as it came.
  private func online(_ world: Surroundings) {
    world.connect(phone)
    known(world, .user("carol"))
    world.userQuestions = []
  }

  @Test func `an INVITE waits until somebody says whose the number is, and rings that user`() {
    let world = world()
    world.connect(phone)
    #expect(world.userQuestions == [.user("carol")], "asked ahead")
    world.invite(to: number)
    #expect(world.userQuestions.last == .number(number) && world.offeredCall(phone) == nil && world.trunkReceived == [])
    known(world, .number(number))
    #expect(world.offeredCall(phone) != nil)
    world.invite(to: number)
    #expect(world.userQuestions.count == 2, "remembered")
  }

  @Test func `several that wait for one number are one question, and all ring`() {
    let world = world()
    world.connect(phone)
    for _ in 0..<3 { world.invite(to: number) }
    #expect(world.userQuestions.count { $0 == .number(number) } == 1)
    known(world, .number(number))
    #expect(world.machine.summaries.count == 3)
  }

  @Test func `after the cache's time it is asked again, and what was known holds on without an answer`() {
    let world = world()
    online(world)
    world.invite(to: number)
    #expect(world.userQuestions == [] && world.machine.summaries.count == 1)
    world.pass(.seconds(61))
    world.invite(to: number)
    #expect(world.userQuestions == [.number(number)] && world.machine.summaries.isEmpty)
    world.feed(.userKnown(.number(number), nil))
    #expect(world.machine.summaries.count == 1)
    world.pass(.seconds(4))
    world.invite(to: number)
    #expect(world.userQuestions.count == 1, "left alone for a moment")
    world.pass(.seconds(2))
    world.invite(to: number)
    #expect(world.userQuestions.count == 2)
  }

  @Test(arguments: [(UserAnswer.unknownUser as UserAnswer?, EndReason.notFound), (nil, .overload)])
  func `no user has it: 404; no answer: 503, as another node may know`(answer: UserAnswer?, reason: EndReason) {
    let world = world()
    world.invite(to: number)
    world.feed(.userKnown(.number(number), answer))
    world.expectRecord(reason, by: .gateway)
    world.invite(to: number)
    #expect(world.userQuestions.count == 1, "that is remembered too")
  }

  @Test func `a caller who gives up while it is asked has a record, and the answer rings nobody`() {
    let world = world()
    online(world)
    world.pass(.seconds(61))
    let leg = world.invite(to: number)
    world.feed(.sip(.cancelled(leg, nil)))
    world.expectRecord(.callerCancelled)
    known(world, .number(number))
    #expect(world.offeredCall(phone) == nil && world.records.count == 1)
  }

  @Test func `numbers of the file and of imports are nobody's to ask about`() {
    let world = world()
    world.connect(Surroundings.phone)
    world.invite()
    #expect(world.userQuestions == [] && world.offeredCall() != nil)
  }

  @Test func `a number moves to another user by the later answer, and there is no moment without one`() {
    let world = world()
    online(world)
    known(world, .user("dave"), "dave", [number])
    #expect(world.machine.routing.directory.owner(of: number)?.user == "dave")
    #expect(world.machine.routing.directory.user("carol")?.numbers == [])
  }

  @Test func `call.start waits for the user's numbers and limits, and for who has the dialled number`() throws {
    let world = world()
    world.connect(phone)
    let call = CallID(high: 1, low: 1)
    let start = ClientMessage.callStart(
      CallStart(to: Handle(k: .phone, h: "+15557000002"), sdp: Surroundings.appSDP(setup: "actpass")))
    #expect(world.request(phone, start, call: call) == nil)
    known(world, .user("carol"))
    #expect(world.userQuestions == [.user("carol"), .number("+15557000002")] && world.answers.isEmpty)
    known(world, .number("+15557000002"), "dave", ["+15557000002"])
    #expect(world.answers.values.contains { world.isOK($0) })
    #expect(world.machine.summaries.first?.trunk == "direct" && world.machine.summaries.first?.from == number)
  }

  @discardableResult
  private func start(_ world: Surroundings, _ key: DeviceKey, _ index: Int, to number: String, account: String? = nil)
    -> RequestAnswer?
  {
    let start = CallStart(to: Handle(k: .phone, h: number), acct: account, sdp: Surroundings.appSDP(setup: "actpass"))
    return world.request(key, .callStart(start), call: CallID(high: 1, low: UInt64(index)))
  }

  @Test func `a thousand calls of one app ask no more often than its rate, and another user's call is asked for at once`() {
    let world = world()
    online(world)
    for index in 0..<1_000 { start(world, phone, index, to: "+1555900\(1_000 + index)") }
    #expect(world.userQuestions.count == 10)
    #expect(world.answers.count == 990 && world.refusals.count { $0.reason == .userRate } == 990)
    guard case .err(let failure)? = world.answers.values.first else { return #expect(Bool(false), "no refusal") }
    #expect(failure.code == .overload && failure.retryMs == 500)
    world.pass(.seconds(1))
    for index in 1_000..<2_000 { start(world, phone, index, to: "+1555900\(1_000 + index)") }
    #expect(world.userQuestions.count == 12)
    let other = DeviceKey(user: "dave", device: "phone")
    world.connect(other, "dave's")
    known(world, .user("dave"), "dave", ["+15557000002"])
    start(world, other, 3_000, to: "+15559999999")
    #expect(world.userQuestions.last == .number("+15559999999"))
  }

  @Test func `who asks too often can still dial an emergency number`() {
    let world = world { routing in
      routing.outbound.append(.init(prefix: "112", choices: [.init(trunk: "carrier")], allowsEmergency: true))
    }
    online(world)
    for index in 0..<20 { start(world, phone, index, to: "+1555900\(index)") }
    world.pass(.seconds(3_600))
    for index in 20..<40 { start(world, phone, index, to: "+1555900\(index)") }
    world.answers = [:]
    #expect(world.isOK(start(world, phone, 100, to: "112")))
  }

  @Test func `what can be refused without an answer asks nobody`() {
    func calling(_ bounds: (calls: Int, ofUser: Int)? = nil) -> Surroundings {
      let world = self.world(bounds: bounds)
      online(world)
      world.feed(.userKnown(.number("+15557654321"), .unknownUser))
      #expect(world.isOK(start(world, phone, 2, to: "+15557654321")))
      return world
    }
    let free = calling()
    #expect(free.code(start(free, phone, 1, to: "+15559000001", account: "work")) == .forbidden && free.userQuestions == [])
    let busy = calling((calls: 9, ofUser: 1))
    #expect(busy.code(start(busy, phone, 3, to: "+15559000002")) == .tooMany && busy.userQuestions == [])
    let world = calling((calls: 1, ofUser: 9))
    #expect(world.code(start(world, phone, 4, to: "+15559000003")) == .overload)
    guard case .failure(let failure)? = world.originate(.init(user: "carol", to: "+15559000004")) else {
      return #expect(Bool(false), "it was taken")
    }
    #expect(failure.code == .overload)
    world.feed(.draining)
    #expect(world.code(start(world, phone, 5, to: "+15559000005")) == .overload)
    #expect(world.userQuestions == [])
  }

  @Test func `without an answer a user is what holds for any`() {
    let world = world { $0.directory = UserDirectory($0.users, anyone: .init(id: "", numbers: ["+15550000000"])) }
    world.connect(phone)
    let start = ClientMessage.callStart(
      CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass")))
    world.request(phone, start, call: CallID(high: 1, low: 1))
    world.feed(.userKnown(.user("carol"), nil))
    world.feed(.userKnown(.number("+15557654321"), nil))
    // no number to call from
    #expect(world.answers.values.map { world.code($0) } == [.forbidden])
  }

  @Test func `a program's call waits, too`() throws {
    let world = world()
    world.connect(phone)
    var answered = false
    let request = OriginateRequest(user: "carol", to: "+15557654321")
    #expect(world.originate(request) == nil)
    known(world, .user("carol"))
    world.feed(.userKnown(.number("+15557654321"), .unknownUser))
    answered = world.offeredCall(phone) != nil
    #expect(answered)
  }

  @Test func `a user who is not one is turned away`() {
    let world = world()
    world.connect(phone)
    world.feed(.userKnown(.user("carol"), .unknownUser))
    #expect(world.turnedAway == [SessionID("phone")])
  }

  @Test func `too many that wait: what is known has to do`() {
    let world = world { $0.inbound = [.init(trunk: "carrier", target: .users)] }
    for index in 0..<Limits.userQuestionsWaiting { world.invite(to: "+1555\(index)") }
    #expect(world.records.isEmpty)
    world.invite(to: "+16660000000")
    #expect(world.records.map(\.end.reason) == [.notFound])
  }

  @Test(arguments: [
    (200, #"{"user":"carol","grant":{"numbers":["+15557000001"]}}"#, true), (404, "", true), (404, "anything", true),
    (200, #"{"user":"dave","grant":{}}"#, false), (200, #"{"user":"","grant":{}}"#, false), (200, #"{"user":"carol"}"#, false),
    (200, #"{"user":"carol","grant":{"numbers":["x"]}}"#, false), (200, #"{"user":"carol","grant":{"number":["+1"]}}"#, false),
    (200, "[]", false), (302, "", false), (500, #"{"user":"carol","grant":{}}"#, false),
  ])
  func `what is an answer, and what is none`(status: Int, body: String, isAnswer: Bool) {
    let answer = UserAnswer(HTTPClientResponse(status: status, body: Array(body.utf8)), to: .user("carol"))
    #expect((answer != nil) == isAnswer)
  }

  @Test func `ten thousand numbers and a megabyte are none`() {
    let many = (0..<10_000).map { "\"+1555\($0)\"" }.joined(separator: ",")
    let body = #"{"user":"carol","grant":{"numbers":["# + many + "]}}"
    #expect(UserAnswer(HTTPClientResponse(status: 200, body: Array(body.utf8)), to: .user("carol")) == nil)
    let name = String(repeating: "x", count: 1_000_000)
    let long = #"{"user":"carol","grant":{"name":""# + name + #""}}"#
    #expect(UserAnswer(HTTPClientResponse(status: 200, body: Array(long.utf8)), to: .user("carol")) == nil)
  }
}
