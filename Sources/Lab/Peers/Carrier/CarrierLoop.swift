import TrunklineAudioCodecs
import TrunklineBytes
import TrunklinePlatform
import TrunklineRTP
import TrunklineSDP
import TrunklineSIPDialogs

/// The calls of a simulated carrier: all on the thread that is in `run`, before that on the thread that made it.
final class CarrierLoop {
  final class Call {
    let leg: LegID
    var audio: CarrierAudio
    var negotiation: TrunkNegotiation
    var answered = false
    var code: Int?
    var answerAt: Instant?
    var hangUpAt: Instant?
    init(leg: LegID, audio: CarrierAudio, negotiation: TrunkNegotiation) {
      (self.leg, self.audio, self.negotiation) = (leg, audio, negotiation)
    }
  }

  private let options: SimulatedCarrier.Options
  let loop: EventLoop
  private let random: RandomSource
  private let emit: (PeerEvent) -> Void
  private let userAgent: CarrierUserAgent
  private var calls: [LegID: Call] = [:]
  private var finished = 0
  private var dialled: UInt64 = 0
  private var tickTimer: EventLoop.TimerID?
  private var dialTimer: EventLoop.TimerID?
  private var nextTick = Instant.zero
  private(set) var reports: [SimulatedCarrier.CallReport] = []

  /// Binds its sockets; throws with the address that is in use.
  init(_ options: SimulatedCarrier.Options, random: RandomSource, emit: @escaping (PeerEvent) -> Void) throws {
    (self.options, self.random, self.emit) = (options, random, emit)
    loop = try EventLoop(name: "carrier")
    userAgent = try CarrierUserAgent(
      loop: loop, name: "carrier", udp: options.listen, tcp: options.listen, gateway: options.gateway, setting: "--listen",
      random: random)
    userAgent.handler = { [unowned self] in handle($0) }
    tickTimer = loop.addTimer("tick") { [unowned self] in tick() }
    dialTimer = loop.addTimer("dial") { [unowned self] in dial() }
  }

  func begin() {
    emit(PeerEvent("listening", ["address": "\(options.listen)"]))
    if options.call != nil { dial() }
  }

  func run() {
    loop.run()
    userAgent.close()
  }

  private var isStopping = false
  func stop() {
    isStopping = true
    for call in calls.values { userAgent.run(call.answered ? .bye(call.leg, nil) : .cancel(call.leg, nil)) }
    endIfDone()
  }

  private func endIfDone() {
    let done = isStopping || options.calls.map { finished >= $0 } ?? false
    if done, calls.isEmpty { loop.stop() }
  }

  // MARK: the user agent

  private func handle(_ event: UserAgent.Event) {
    switch event {
    case .inviteReceived(let leg, let invite): incoming(leg, invite)
    case .progress(let leg, let code, let sdp):
      emit(PeerEvent("progress", ["code": "\(code)"]))
      if let sdp, let call = calls[leg], !call.answered { applyAnswer(call, sdp) }
    case .answered(let leg, let sdp):
      guard let call = calls[leg] else { return }
      emit(PeerEvent("answered", ["code": "200"]))
      call.answered = true
      if let sdp { applyAnswer(call, sdp) }
      connected(call)
    case .acknowledged(let leg, let sdp):
      guard let call = calls[leg] else { return }
      if let sdp { applyAnswer(call, sdp) }
      emit(PeerEvent("acknowledged"))
      connected(call)
    case .failed(let leg, let code, _, _):
      calls[leg]?.code = code
      emit(PeerEvent("failed", ["code": "\(code)"]))
    case .cancelled: emit(PeerEvent("cancelled"))
    case .byeReceived: emit(PeerEvent("bye", ["by": "gateway"]))
    case .reinviteReceived(let leg, let sdp):
      guard let call = calls[leg], let sdp, let (answer, media) = try? call.negotiation.answer(to: sdp) else {
        return userAgent.run(.refuseReinvite(leg, code: 488))
      }
      call.audio.start(media)
      userAgent.run(.answerReinvite(leg, sdp: answer))
    case .legClosed(let leg): closed(leg)
    case .ackTimedOut: emit(PeerEvent("noAck"))
    case .digit(_, let digit, _): emit(PeerEvent("digit", ["digit": String(digit), "by": "info"]))
    default: break
    }
  }

  private func applyAnswer(_ call: Call, _ sdp: String) {
    do {
      call.audio.start(try call.negotiation.apply(answer: sdp))
    } catch {
      emit(PeerEvent("badAnswer", ["error": "\(error)"]))
    }
  }

  private func connected(_ call: Call) {
    if let talk = options.talk { call.hangUpAt = loop.now + talk }
    call.audio.play(options.digits)
  }

  private func makeCall(_ leg: LegID) throws -> Call {
    let source = SpeechSource(samples: options.samples ?? SpeechSource.telephone, repeats: options.repeats)
    let impairment = Impairment(
      lossPercent: options.lossPercent, jitterMilliseconds: options.jitterMilliseconds, reorderPercent: options.reorderPercent)
    let audio = try CarrierAudio(
      loop: loop, address: options.listen.ip, encoding: options.codecs.first ?? .pcmu, source: source, impairment: impairment,
      random: random)
    audio.onFirstAudio = { [emit] in emit(PeerEvent("firstAudio", at: $0)) }
    audio.onDigit = { [emit] in emit(PeerEvent("digit", ["digit": String($0)])) }
    let call = Call(
      leg: leg, audio: audio,
      negotiation: TrunkNegotiation(
        local: audio.socket.localAddress, codecs: options.codecs, sessionID: random.next() >> 2, protection: protection))
    calls[leg] = call
    if nextTick < loop.now { nextTick = loop.now }
    if let tickTimer { loop.setTimer(tickTimer, at: nextTick) }
    return call
  }

  private var protection: TrunkNegotiation.Protection {
    switch options.srtp {
    case .off: .off
    case .optional: .optional(random)
    case .required: .required(random)
    }
  }

  private func dial() {
    guard let number = options.call, !isStopping else { return }
    dialled += 1
    let leg = LegID.outbound(dialled)
    guard let call = try? makeCall(leg) else { return noRoute() }
    emit(PeerEvent("invite", ["to": number]))
    let isSent = userAgent.invite(
      leg, to: number, from: options.from, sdp: call.negotiation.makeOffer(), credentials: options.credentials,
      transport: options.transport)
    if !isSent { noRoute() }
  }

  private func noRoute() {
    emit(PeerEvent("noRoute", ["gateway": "\(options.gateway)"]))
    loop.stop()
  }

  private func incoming(_ leg: LegID, _ invite: InboundInvite) {
    emit(PeerEvent("invited", ["from": invite.from.number, "to": invite.to.number]))
    if let code = options.refuse { return userAgent.run(.refuse(leg, code: code, reason: nil, cause: nil, retryAfter: nil)) }
    guard let offer = invite.sdp, let call = try? makeCall(leg) else {
      return userAgent.run(.refuse(leg, code: 503, reason: nil, cause: nil, retryAfter: nil))
    }
    do {
      let (answer, media) = try call.negotiation.answer(to: offer)
      if options.isEarly {
        userAgent.run(.respondProvisional(leg, code: 183, reason: nil, sdp: answer))
        call.audio.start(media)
      } else {
        userAgent.run(.respondProvisional(leg, code: 180, reason: nil, sdp: nil))
      }
      call.answerAt = loop.now + options.answerAfter
      pendingAnswers[leg] = (answer, media)
    } catch {
      userAgent.run(.refuse(leg, code: 488, reason: nil, cause: nil, retryAfter: nil))
    }
  }
  private var pendingAnswers: [LegID: (sdp: String, media: TrunkMedia)] = [:]

  private func closed(_ leg: LegID) {
    pendingAnswers[leg] = nil
    guard let call = calls.removeValue(forKey: leg) else { return endIfDone() }
    call.audio.close()
    let heard = call.audio.finish()
    var report = SimulatedCarrier.CallReport(leg: "\(leg)", wasAnswered: call.answered, code: call.code)
    report.sent = heard.sent
    report.received = heard.received
    report.lost = heard.lost
    report.heard = heard.heard
    report.heardSince = heard.heardSince
    report.spokenSince = heard.spokenSince
    report.jitterMilliseconds = heard.jitterMilliseconds
    report.digits = heard.digits
    report.profile = heard.profile
    report.refused = heard.refused
    report.spoken = options.samples ?? SpeechSource.telephone
    if reports.count < 1000 { reports.append(report) }
    finished += 1
    emit(
      PeerEvent(
        "ended",
        [
          "answered": "\(call.answered)", "sent": "\(heard.sent)", "received": "\(heard.received)", "lost": "\(heard.lost)",
          "digits": heard.digits, "jitterMs": PeerEvent.number(heard.jitterMilliseconds),
          "spokenAt": PeerEvent.wall(heard.spokenSince), "heardAt": PeerEvent.wall(heard.heardSince),
          "srtp": heard.profile ?? "none", "refused": "\(heard.refused)",
        ]))
    if options.call != nil {
      if dialled >= UInt64(max(1, options.calls ?? 1)) { isStopping = true }
      if !isStopping, let dialTimer { loop.setTimer(dialTimer, at: loop.now + options.gap) }
    }
    endIfDone()
  }

  // MARK: every 20 ms, and every 5 ms while packets are held back

  private func tick() {
    let now = loop.now
    if now >= nextTick {
      for call in calls.values {
        if let due = call.answerAt, due <= now { answer(call) }
        if let due = call.hangUpAt, due <= now {
          call.hangUpAt = nil
          emit(PeerEvent("bye", ["by": "carrier"]))
          userAgent.run(.bye(call.leg, nil))
        }
        call.audio.tick(at: now)
      }
      nextTick = nextTick + .milliseconds(20)
      if now - nextTick > .milliseconds(200) { nextTick = now + .milliseconds(20) }
    }
    for call in calls.values { call.audio.sendDelayed(at: now) }
    guard !calls.isEmpty, let tickTimer else { return }
    let impaired = options.jitterMilliseconds > 0 || options.reorderPercent > 0
    loop.setTimer(tickTimer, at: impaired ? min(nextTick, now + .milliseconds(5)) : nextTick)
  }

  private func answer(_ call: Call) {
    call.answerAt = nil
    guard let (sdp, media) = pendingAnswers.removeValue(forKey: call.leg) else { return }
    call.answered = true
    emit(PeerEvent("answer", ["code": "200"]))
    call.audio.start(media)
    userAgent.run(.answer(call.leg, sdp: sdp))
  }
}
