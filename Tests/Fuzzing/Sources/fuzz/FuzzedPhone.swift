import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// A phone whose gateway, system, audio device and user do what the steps say, in any order. A step is a letter, a call's digit
/// and the letter's data. Checked after each step: an action is completed once; no call connects without an answer or a dial; the
/// audio device is started once at a time, configured before and released with the last call; a timer advances; tables are
/// bounded.
struct FuzzedPhone {
  private var phone: PhoneMachine
  private var now = Instant(nanoseconds: 1_000_000_000)
  private(set) var device = DeviceCheck()
  /// The phone's requests without an answer, the oldest first.
  private var requests: [Identifier] = []
  /// The gateway's last sequence number.
  private var number = 0
  private var lastAction = 0
  private var open: [SystemActionID: SystemRequest] = [:]
  private var completed: Set<SystemActionID> = []
  /// The phone's requests to the system, the oldest first.
  private var asked: [SystemRequest] = []
  private var reporting: [Identifier] = []
  private var descriptions: [(call: Identifier, generation: Int)] = []
  private var generations: [Identifier: Int] = [:]
  private var wanted: Set<Identifier> = []
  private var reports: [Identifier: Int] = [:]
  private var ends: [Identifier: Int] = [:]
  private var waiting: [PhoneMachine.Input] = []
  /// Gateway and system fulfil each request at once.
  private let obliges: Bool

  static let calls = (0..<4).map { Identifier(high: 7, low: UInt64($0)) }
  private static let handle = Handle(k: .phone, h: "+15550001")
  private static let closes: [UInt16] = [1006, 1000, 1012, 4001, 4002, 4003, 4008, 4009]
  private static let types: [UInt8: String] = [
    UInt8(ascii: "O"): "call.offer", UInt8(ascii: "C"): "call.connected", UInt8(ascii: "U"): "call.update",
    UInt8(ascii: "X"): "call.cancel", UInt8(ascii: "E"): "call.ended", UInt8(ascii: "G"): "call.gone",
    UInt8(ascii: "P"): "call.progress", UInt8(ascii: "M"): "media.restart", UInt8(ascii: "H"): "call.held",
    UInt8(ascii: "D"): "call.digit", UInt8(ascii: "T"): "call.transferred",
  ]

  init(obliges: Bool) {
    var configuration = PhoneMachine.Configuration(device: Hello.Device(id: "cell"))
    configuration.isForeground = obliges
    phone = PhoneMachine(configuration, random: .seeded(1))
    self.obliges = obliges
  }

  // MARK: steps

  mutating func step(_ kind: UInt8, _ digit: UInt8, _ rest: [UInt8] = []) {
    let call = Self.calls[Int(digit & 3)]
    now = now + .milliseconds(5)
    if let type = Self.types[kind] { return numbered(type, call, rest) }
    switch Character(Unicode.Scalar(kind)) {
    // the gateway
    case "w": welcome(rest)
    case "k": if !requests.isEmpty { frame("ok", re: requests.removeFirst(), nil, rest) }
    case "e": if !requests.isEmpty { frame("err", re: requests.removeFirst(), nil, rest) }
    case "n": if !requests.isEmpty { numbered("media.answer", call, rest, re: requests.removeFirst()) }
    case "Q": frame("quality", re: nil, call, rest)
    case "A": frame("auth.expiring", re: nil, nil, rest)
    case "p": frame("pong", re: nil, nil, [])
    case "f": give(.socket(.frame(rest)))
    case "o": give(.socket(.socketOpened))
    case "c": give(.socket(.socketClosed(Self.closes[Int(digit) % Self.closes.count])))
    default: systemStep(Character(Unicode.Scalar(kind)), call, digit)
    }
  }

  private mutating func systemStep(_ kind: Character, _ call: Identifier, _ digit: UInt8) {
    switch kind {
    case "!", "?": give(.pushed(.init(call: call, caller: Self.handle, wake: "w"), mustReport: kind == "!"))
    case "/": give(.pushed(nil, mustReport: true))
    case "r":
      let answers: [ReportRefusal?] = [nil, .exists, .doNotDisturb, .blocked, .other(7)]
      if !reporting.isEmpty { give(.reported(reporting.removeFirst(), answers[Int(digit & 7) % 5])) }
    case "a": perform(.answer(call), timeout: digit & 4 == 0 ? .seconds(20) : nil)
    case "z": perform(.end(call))
    case "h": perform(.hold(call, digit & 4 == 0))
    case "m": perform(.mute(call, digit & 4 == 0))
    case "d": perform(.digits(call, digit & 4 == 0 ? "12#" : "x"))
    case "s": if !asked.isEmpty { perform(asked.removeFirst()) }
    case "x": if !asked.isEmpty { give(.requestRefused(asked.removeFirst())) }
    case "u":
      guard let (id, request) = open.min(by: { $0.key.raw < $1.key.raw }) else { return }
      open[id] = nil
      give(.timedOut(id, request))
    case "v": give(.audioActivated)
    case "V": give(.audioDeactivated)
    case "%": give(.audioChanged(isReset: digit & 1 == 0))
    case "R":
      open = [:]
      give(.reset)
    case "i": give(.foreground(digit & 1 == 0))
    case "N": give(.pathChanged)
    case "W": give(.microphone([.granted, .denied, .undetermined][Int(digit) % 3]))
    default: appStep(kind, call, digit)
    }
  }

  private mutating func appStep(_ kind: Character, _ call: Identifier, _ digit: UInt8) {
    switch kind {
    // the device, and the media of a call
    case "y": give(.audioRuns(digit & 1 == 0 ? .running : .idle))
    case "F":
      guard device.isRunning else { return }
      device.failed()
      give(.audioFailed(.start))
    case "K": if device.isConfigured { give(.audioFailed(.configure)) }
    case "g":
      guard !descriptions.isEmpty else { return }
      let (call, generation) = descriptions.removeFirst()
      generations[call] = generation
      give(.media(call, .described(sdp: "v=0", generation: generation)))
    case "j":
      let generation = generations[call] ?? 1
      give(.media(call, .connected(generation: generation, pair: nil, roundTripMilliseconds: 1, profile: "AEAD_AES_128_GCM")))
    case "J": give(.media(call, .failed([.ice, .dtls, .device][Int(digit) % 3], "no pair")))
    // the app
    case "b": give(.start)
    case "t":
      give(.token("a.b.c", device: digit & 1 == 0 ? "cell" : nil))
    case "B": give(.tokenFailed)
    case "S": give(.pushToken(digit & 1 == 0 ? .init(kind: .apnsVoIP, token: "0a0b") : nil))
    case "L": give(.logOut)
    case "&": give(.dial(call, to: Self.handle))
    case "+": give(.act(call, .answer))
    case "-": give(.act(call, .end))
    case "*": give(.act(call, .hold(digit & 4 == 0)))
    case "=": give(.act(call, .mute(digit & 4 == 0)))
    case "#": give(.act(call, .transfer(to: Self.handle)))
    case ".": tick()
    case ":":
      now = now + .milliseconds(Int64(digit) * 50)
      give(.timer)
    default: break
    }
  }

  /// Makes the device answer its next request of this kind with a failure.
  mutating func refuse(_ request: AudioRequest) { device.refuses = request }

  private mutating func tick() {
    guard let due = phone.nextDeadline else { return }
    now = max(now, due)
    give(.timer)
    precondition(phone.nextDeadline.map { $0 > now } ?? true, "a timer that was due is due no more")
  }

  // MARK: the gateway's frames

  private mutating func welcome(_ rest: [UInt8]) {
    if !String(decoding: rest, as: UTF8.self).contains(#""resumed":true"#) { number = 0 }
    frame("welcome", re: Self.calls[0], nil, rest)
  }
  private mutating func numbered(_ type: String, _ call: Identifier, _ d: [UInt8], re: Identifier? = nil) {
    number += 1
    frame(type, re: re, call, d, seq: number)
  }
  private mutating func frame(_ type: String, re: Identifier?, _ call: Identifier?, _ d: [UInt8], seq: Int? = nil) {
    var text = #"{"t":"\#(type)""#
    if let re { text += #","re":"\#(re)""# }
    if let seq { text += #","seq":\#(seq)"# }
    if let call { text += #","call":"\#(call)""# }
    give(.socket(.frame(Array(text.utf8) + (d.isEmpty ? [] : Array(#","d":"#.utf8) + d) + Array("}".utf8))))
  }

  // MARK: what the phone does

  private mutating func perform(_ request: SystemRequest, timeout: Duration? = nil) {
    lastAction += 1
    let id = SystemActionID(lastAction)
    open[id] = request
    switch request {
    case .answer(let call): wanted.insert(call)
    case .start(let call, _):
      wanted.insert(call)
      reports[call, default: 0] += 1
    default: break
    }
    give(.perform(id, request, timeout: timeout))
  }

  private mutating func give(_ input: PhoneMachine.Input) {
    waiting.append(input)
    guard waiting.count == 1 else { return }
    while let next = waiting.first {
      var out: [PhoneMachine.Action] = []
      phone.handle(next, at: now, into: &out)
      if case .pushed(_, mustReport: true) = next {
        guard case .report? = out.first else { preconditionFailure("the report is the first of a push's turn") }
      }
      for action in out { take(action) }
      waiting.removeFirst()
      if waiting.isEmpty, obliges { oblige() }
    }
    check()
  }

  private mutating func take(_ action: PhoneMachine.Action) {
    switch action {
    case .complete(let id, _):
      precondition(open[id] != nil && completed.insert(id).inserted, "an action is completed once, and not after its time")
      open[id] = nil
    case .report(let call, _, _):
      reports[call, default: 0] += 1
      reporting.append(call)
    case .reportEnded(let call, _):
      ends[call, default: 0] += 1
      precondition(ends[call, default: 0] <= max(1, reports[call] ?? 0), "the end of a call is reported once")
    case .request(let request): asked.append(request)
    case .media(let call, .answer(_, let generation)), .media(let call, .offer(let generation)):
      descriptions.append((call, generation))
    case .audio(let request): if let answer = device.take(request) { waiting.append(answer) }
    case .changed(let info):
      precondition(
        info.state != .connected || wanted.contains(info.id), "a call is connected that nobody has answered or dialled")
      precondition((info.state == .ended) == (info.reason != nil), "an end has its reason")
    case .socket(.write(let bytes)): written(bytes)
    case .socket(.connect): requests = []
    case .needsToken: if obliges { waiting.append(.token("a.b.c")) }
    default: break
    }
  }

  private mutating func written(_ bytes: [UInt8]) {
    guard let frame = try? ClientFrame(decoding: bytes), case .message(let message) = frame.body else {
      preconditionFailure("what the phone writes is a frame: \(String(decoding: bytes, as: UTF8.self))")
    }
    guard let id = frame.id else { return }
    if case .hello = message { return }
    requests.removeAll { $0 == id }
    requests.append(id)
  }

  /// Gateway, system and media fulfil all open requests.
  private mutating func oblige() {
    var rounds = 0
    while rounds < 64, !(asked.isEmpty && reporting.isEmpty && descriptions.isEmpty && requests.isEmpty) {
      rounds += 1
      if !asked.isEmpty { systemStep("s", Self.calls[0], 0) }
      if !reporting.isEmpty { systemStep("r", Self.calls[0], 0) }
      if !descriptions.isEmpty { appStep("g", Self.calls[0], 0) }
      if !requests.isEmpty { frame("ok", re: requests.removeFirst(), nil, Array(#"{"won":true,"sdp":"v=0"}"#.utf8)) }
    }
  }

  // MARK: invariants

  private func check() {
    guard waiting.isEmpty, phone.liveCalls.isEmpty else { return }
    precondition(!device.isConfigured && !device.isRunning, "the device is given back with the last call")
  }

  /// The system ends the remaining calls: then none exists, and no table exceeds its limit.
  mutating func finish() {
    for call in phone.liveCalls { perform(.end(call)) }
    precondition(phone.liveCalls.isEmpty, "a call that the user ended is over")
    for id in open.keys {
      precondition(completed.contains(id), "action \(id.raw) was never completed: \(String(describing: open[id]))")
    }
    let limits = ["calls": 64, "tags": 256, "holds": 256, "orphans": 32, "open": 256, "outbox": 256]
    for (name, limit) in limits { precondition(count(of: name, in: phone) <= limit, "\(name) is bounded") }
    // whatever happened, time passes without endless timers
    for _ in 0..<40 { tick() }
  }

  private func count(of name: String, in value: Any) -> Int {
    for child in Mirror(reflecting: value).children {
      if child.label == name { return Mirror(reflecting: child.value).children.count }
      if child.label == "session", let session = Mirror(reflecting: child.value).children.first {
        let found = count(of: name, in: session.value)
        if found > 0 { return found }
      }
    }
    return 0
  }
}

/// The audio device as the phone must use it: configured, started once at a time, stopped, released.
struct DeviceCheck {
  private(set) var isConfigured = false
  private(set) var isRunning = false
  private(set) var starts = 0
  /// The next request of this kind is answered with a failure.
  var refuses: AudioRequest?

  /// - Returns: the device's answer.
  mutating func take(_ request: AudioRequest) -> PhoneMachine.Input? {
    defer { if refuses == request { refuses = nil } }
    switch request {
    case .configure:
      isConfigured = true
      return refuses == request ? .audioFailed(request) : nil
    case .start:
      precondition(isConfigured, "configured before it is started")
      precondition(!isRunning, "at most one start at a time")
      if refuses == request { return .audioFailed(request) }
      (isRunning, starts) = (true, starts + 1)
      return .audioRuns(.running)
    case .restart:
      precondition(isConfigured && isRunning, "what runs is restarted")
      if refuses == request {
        isRunning = false
        return .audioFailed(request)
      }
      return .audioRuns(.running)
    case .stop: isRunning = false
    case .release:
      precondition(!isRunning, "stopped before it is given back")
      isConfigured = false
    }
    return .audioRuns(.idle)
  }
  mutating func failed() { isRunning = false }
}
