import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// A phone machine on virtual time; the test acts as gateway, system and device.
struct PhoneRig {
  var phone: PhoneMachine
  var now = Instant.zero
  private(set) var out: [PhoneMachine.Action] = []
  private var number = 0
  private var actions = 0
  /// Requests of the phone without an answer, the oldest first.
  private(set) var requests: [(id: Identifier, message: ClientMessage)] = []

  static let handle = Handle(k: .phone, h: "+15550001")
  static func call(_ number: UInt64) -> Identifier { Identifier(high: 5, low: number) }

  init(isForeground: Bool = true) {
    var configuration = PhoneMachine.Configuration(device: Hello.Device(id: "cell"))
    configuration.isForeground = isForeground
    phone = PhoneMachine(configuration, random: .seeded(2))
  }

  /// - Returns: the phone's actions.
  @discardableResult mutating func give(_ input: PhoneMachine.Input) -> [PhoneMachine.Action] {
    out = []
    phone.handle(input, at: now, into: &out)
    // a deadline that stays in the past stops or spins the loop that waits for it
    if case .timer = input { #expect(phone.nextDeadline.map { $0 > now } ?? true) }
    for action in out {
      guard case .socket(.write(let bytes)) = action, let frame = try? ClientFrame(decoding: bytes),
        case .message(let message) = frame.body, let id = frame.id
      else { continue }
      if case .hello = message { continue }
      requests.removeAll { $0.id == id }
      requests.append((id, message))
    }
    return out
  }

  @discardableResult mutating func perform(_ request: SystemRequest, timeout: Duration? = .seconds(20)) -> [PhoneMachine.Action] {
    actions += 1
    return give(.perform(SystemActionID(actions), request, timeout: timeout))
  }

  @discardableResult mutating func receive(_ message: ServerMessage, _ call: Identifier? = nil) -> [PhoneMachine.Action] {
    var seq: Int?
    if message.content.type.isNumbered {
      number += 1
      seq = number
    }
    return give(.socket(.frame(ServerFrame(message, seq: seq, call: call).encoded())))
  }

  /// Answers the oldest request of this type.
  @discardableResult mutating func answer(_ type: String, _ message: ServerMessage = .ok(Success(won: true, sdp: "v=0")))
    -> [PhoneMachine.Action]
  {
    guard let index = requests.firstIndex(where: { $0.message.content.type.rawValue == type }) else { return [] }
    return give(.socket(.frame(ServerFrame(message, re: requests.remove(at: index).id).encoded())))
  }

  mutating func welcome(
    _ calls: [CallSnapshot] = [], hb: Int = 15_000, ice: [ICEServer] = [], dirVersion: Int = 0, caps: [String] = []
  ) -> [PhoneMachine.Action] {
    give(.socket(.socketOpened))
    number = 0
    let welcome = Welcome(
      sid: "s", resumeToken: "r", resumed: false, replayFrom: 1, time: 0, hb: hb, ice: ice, calls: calls, dirVersion: dirVersion,
      caps: caps)
    return give(.socket(.frame(ServerFrame(.welcome(welcome), re: Self.call(0)).encoded())))
  }

  mutating func logIn() {
    give(.start)
    give(.token("a.b.c"))
    _ = welcome()
  }

  /// Advances the time; timers fire on the way.
  mutating func wait(_ time: Duration) -> [PhoneMachine.Action] {
    let end = now + time
    var all: [PhoneMachine.Action] = []
    while let due = phone.nextDeadline, due <= end {
      now = max(now, due)
      all += give(.timer)
    }
    now = end
    return all
  }

  /// Offers an incoming call that is described and reported to the screen.
  mutating func ring(_ call: Identifier) {
    offer(call)
    give(.reported(call, nil))
    give(.media(call, .described(sdp: "v=0", generation: 1)))
    answer("call.prepare")
  }
  @discardableResult mutating func offer(_ call: Identifier, gen: Int = 1) -> [PhoneMachine.Action] {
    receive(.callOffer(CallOffer(from: Self.handle, to: Self.handle, acct: "default", sdp: "v=0", gen: gen, exp: 0)), call)
  }

  func waiting(_ type: String) -> Int { requests.count { $0.message.content.type.rawValue == type } }
}

extension [PhoneMachine.Action] {
  /// Names of the actions, without their values.
  var names: [String] { map { String(String(describing: $0).prefix { $0.isLetter }) } }
  var audio: [AudioRequest] { compactMap { if case .audio(let order) = $0 { order } else { nil } } }
  var completions: [Bool] { compactMap { if case .complete(_, let isDone) = $0 { isDone } else { nil } } }
  var ends: [CallEndedReason] { compactMap { if case .reportEnded(_, let reason) = $0 { reason } else { nil } } }
  var states: [CallInfo] { compactMap { if case .changed(let info) = $0 { info } else { nil } } }
  var written: [String] {
    compactMap { action in
      guard case .socket(.write(let bytes)) = action, let frame = try? ClientFrame(decoding: bytes),
        case .message(let message) = frame.body
      else { return nil }
      return message.content.type.rawValue
    }
  }
}
