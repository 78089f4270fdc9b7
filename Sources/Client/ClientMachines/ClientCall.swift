public import TrunklineAppProtocol
public import TrunklineBytes

/// One call of an app, without sockets or audio: decides which messages are sent, what the media does, and which state the user
/// sees.
///
/// | state | offer | tap / dial | media connected | `call.connected` | terminal message | hang up |
/// |---|---|---|---|---|---|---|
/// | ringing | prepare; the same one again: ringing only | answer, once `call.prepare` is accepted → answering | `media.ready` | ignored | → ended | reject → ended |
/// | answering | ignored | ignored | `media.ready` | → connected | → ended | end → ended |
/// | answering, and `call.progress` → ready, progress: a call that a program makes for the user | ignored | ignored | `media.ready` | → connected | → ended | end → ended |
/// | starting, ready, progress | ignored | ignored | `media.ready` | → connected | → ended | end → ended |
/// | connected | ignored | ignored | `media.ready` (restart) | ignored | → ended | end → ended |
/// | ended | ignored | ignored | ignored | ignored | ignored | ignored |
public struct ClientCall: Sendable {
  public enum State: String, Sendable { case ringing, answering, starting, ready, progress, connected, ended }

  public enum Input: Sendable {
    /// The offer of an incoming call, first or again.
    case offered(sdp: String, generation: Int, ringing: CallRinging = .init())
    /// - Parameter timeoutMilliseconds: the time left of the system's action.
    case answer(ageMilliseconds: Int, timeoutMilliseconds: Int? = nil)
    /// The parts of the device's audio that run; `media.active` reports them while the call is connected.
    case audio(MediaActive)
    case reject(CallReject.Reason)
    case hangUp(CallEnd.Reason = .localEnd)
    case mute(Bool)
    case digits(String)
    /// The network path changed: new ICE credentials.
    case restart(MediaRestart.Cause)
    case media(MediaReport)
    case message(ServerMessage)
    /// The answer to the request with this tag.
    case answered(RequestTag, Result<Success, Failure>)
    case restarted(MediaAnswer)
    /// The session's snapshot lacks this call.
    case lostByGateway
  }

  /// The request that an answer belongs to.
  public enum RequestTag: Sendable { case prepare, answer, reject, end, start, mute, digits, restart }

  /// Reports of the media.
  public enum MediaReport: Sendable {
    /// Our description for the requested generation.
    case described(sdp: String, generation: Int)
    case connected(generation: Int, pair: MediaReady.Pair?, roundTripMilliseconds: Double?, profile: String)
    case failed(MediaFail.Stage, String)
    case silence(Silence)
  }

  /// A connected call that receives no packet from the gateway.
  public enum Silence: Sendable {
    /// For 1.5 s: media sends a check.
    case began
    /// The check was not answered within a second.
    case stays
    /// A packet was received.
    case ended
  }

  public enum Action: Sendable {
    case request(ClientMessage, RequestTag)
    case notify(ClientMessage)
    case media(MediaRequest)
    case stateChanged(State)
    case digit(Character)
    case quality(Quality)
  }

  public enum MediaRequest: Sendable {
    /// Describe ourselves as the answer to this offer: `described` follows, ICE and DTLS start.
    case answer(offer: String, generation: Int)
    /// Make an offer (a first one or a restart): `described` follows.
    case offer(generation: Int)
    case apply(answer: String, generation: Int)
    /// Audio may flow: the call is connected, or else its early media is heard.
    case activate(isConnected: Bool)
    case mute(Bool)
    case close
  }

  public let id: Identifier
  public let direction: CallSnapshot.Direction
  public let peer: Handle
  public private(set) var state: State
  /// Why it ended; nil before the end.
  public private(set) var reason: EndReason?
  public private(set) var codec: String?
  private var generation = 1
  private var readyGeneration = 0
  private var offer: (sdp: String, generation: Int)?
  private let options: CallOptions
  private var restartCause: MediaRestart.Cause?
  /// A restart that was requested before the gateway accepted the first description.
  private var heldRestart: MediaRestart.Cause?
  /// The gateway has accepted our description: an answer is sent only then.
  private var isPrepared = false
  /// `isDescribed`: our description was sent. `isUnable`: it could not be made.
  private var isDescribed = false
  private var isUnable = false
  /// The tap that waits for `isPrepared`.
  private var tap: CallAnswer?
  private var audio: MediaActive
  private var reportedAudio = MediaActive.idle

  /// An incoming call; pass its offer next.
  /// - Parameter audio: the parts of the device's audio that already run; a bot's always does.
  public init(incoming id: Identifier, from: Handle, audio: MediaActive) {
    (self.id, direction, peer, state, options, self.audio) = (id, .incoming, from, .ringing, CallOptions(), audio)
  }

  /// An outgoing call; `dial` starts it.
  public init(outgoing id: Identifier, to: Handle, _ options: CallOptions = CallOptions(), audio: MediaActive) {
    (self.id, direction, peer, state, self.options, self.audio) = (id, .outgoing, to, .starting, options, audio)
  }

  /// Starts an outgoing call.
  public mutating func dial(into actions: inout [Action]) {
    guard direction == .outgoing, state == .starting else { return }
    actions.append(.media(.offer(generation: 1)))
  }

  public mutating func handle(_ input: Input, into actions: inout [Action]) {
    guard state != .ended else { return }
    switch input {
    case .offered(let sdp, let gen, let ringing): offered(sdp, gen: gen, ringing: ringing, &actions)
    case .answer(let age, let timeout):
      guard state == .ringing else { return }
      if isUnable { return withdraw(.mediaFailed, &actions) }
      move(to: .answering, &actions)
      tap = CallAnswer(ageMs: age, timeoutMs: timeout)
      answerIfPrepared(&actions)
    case .audio(let running):
      audio = running
      reportAudio(&actions)
    case .reject(let why):
      guard state == .ringing else { return }
      actions.append(.request(.callReject(CallReject(reason: why)), .reject))
      end(.declined, &actions)
    // until our answer is sent, `call.end` would decline the call for every device
    case .hangUp(.mediaFailed) where direction == .incoming && (state == .ringing || tap != nil): withdraw(.mediaFailed, &actions)
    case .hangUp(let why):
      actions.append(.request(.callEnd(CallEnd(reason: why)), .end))
      end(why == .mediaFailed ? .mediaFailed : .localEnd, &actions)
    case .mute(let on):
      actions.append(.media(.mute(on)))
      actions.append(.request(.callMute(CallMute(on: on, mode: .input)), .mute))
    case .digits(let digits): actions.append(.request(.callDTMF(CallDTMF(digits: digits)), .digits))
    case .restart(let cause): restart(generation + 1, cause, &actions)
    case .media(let report): media(report, &actions)
    case .message(let message): received(message, &actions)
    case .answered(let tag, let result): answered(tag, result, &actions)
    case .restarted(let answer): actions.append(.media(.apply(answer: answer.sdp, generation: answer.gen)))
    case .lostByGateway: end(.unknown, &actions)
    }
  }

  private mutating func move(to next: State, _ actions: inout [Action]) {
    guard state != next else { return }
    state = next
    actions.append(.stateChanged(next))
  }

  private mutating func end(_ why: EndReason, _ actions: inout [Action]) {
    reason = why
    actions.append(.media(.close))
    move(to: .ended, &actions)
  }

  private mutating func offered(_ sdp: String, gen: Int, ringing: CallRinging, _ actions: inout [Action]) {
    guard direction == .incoming, state == .ringing, (1..<Limits.generations).contains(gen) else { return }
    actions.append(.notify(.callRinging(ringing)))
    // the same offer, from the snapshot of a fresh session: our description is valid, or is being sent; a second one would
    // restart ICE and DTLS at the gateway only
    if let offer, offer == (sdp, gen), !isUnable { return }
    offer = (sdp, gen)
    // a new description: an earlier `media.ready` no longer counts
    generation = gen
    readyGeneration = 0
    isPrepared = false
    isDescribed = false
    isUnable = false
    heldRestart = nil
    actions.append(.media(.answer(offer: sdp, generation: gen)))
  }

  /// Answers once the gateway has accepted a description: it would refuse `call.answer` without one.
  private mutating func answerIfPrepared(_ actions: inout [Action]) {
    guard isPrepared, let tap else { return }
    self.tap = nil
    actions.append(.request(.callAnswer(tap), .answer))
  }

  private mutating func reportAudio(_ actions: inout [Action]) {
    guard state == .connected, audio != reportedAudio else { return }
    reportedAudio = audio
    actions.append(.notify(.mediaActive(audio)))
  }

  /// This device cannot accept the call: it leaves, and the others continue to ring.
  private mutating func withdraw(_ why: EndReason, _ actions: inout [Action]) {
    actions.append(.request(.callReject(CallReject(scope: .device, reason: .mediaFailed)), .reject))
    end(why, &actions)
  }

  private mutating func restart(_ next: Int, _ cause: MediaRestart.Cause, _ actions: inout [Action]) {
    guard next == generation + 1, restartCause == nil else { return }
    // while it rings, too: the prepared media must work when the call is answered
    if direction == .incoming, !isPrepared { return heldRestart = cause }
    restartCause = cause
    generation = next
    actions.append(.media(.offer(generation: next)))
  }

  private mutating func media(_ report: MediaReport, _ actions: inout [Action]) {
    switch report {
    case .described(let sdp, let gen) where restartCause != nil:
      actions.append(.request(.mediaRestart(MediaRestart(sdp: sdp, gen: gen, cause: restartCause)), .restart))
      restartCause = nil
    case .described(let sdp, let gen) where direction == .incoming:
      isDescribed = true
      actions.append(.request(.callPrepare(CallPrepare(sdp: sdp, gen: gen)), .prepare))
    case .described(let sdp, let gen):
      let start = CallStart(
        from: options.from, to: peer, acct: options.account, sdp: sdp, gen: gen, location: options.location,
        parameters: options.parameters)
      actions.append(.request(.callStart(start), .start))
    case .connected(let gen, let pair, let roundTrip, let profile):
      guard gen == generation, readyGeneration != gen else { return }
      readyGeneration = gen
      actions.append(.notify(.mediaReady(MediaReady(gen: gen, pair: pair, rttMs: roundTrip, dtls: profile))))
    case .silence: break  // handled by the phone
    case .failed(let stage, let detail):
      actions.append(.notify(.mediaFail(MediaFail(gen: generation, stage: stage, detail: detail))))
      guard direction == .incoming, !isPrepared, !isDescribed else { return }
      isUnable = true
      if state == .answering { withdraw(.mediaFailed, &actions) }
    }
  }

  private mutating func received(_ message: ServerMessage, _ actions: inout [Action]) {
    switch message {
    case .callConnected(let d):
      // never without the user's tap: the microphone would be open
      guard state != .connected, direction == .outgoing || state != .ringing else { return }
      codec = d.codec
      move(to: .connected, &actions)
      actions.append(.media(.activate(isConnected: true)))
      reportAudio(&actions)
    case .callCancel(let d), .callEnded(let d), .callGone(let d): end(d.reason, &actions)
    case .callProgress(let d):
      // for an incoming call: the gateway dials for this user, who has answered first
      guard state != .connected, direction == .outgoing || state != .ringing else { return }
      move(to: d.stage == .trying ? .ready : .progress, &actions)
      if d.stage == .early { actions.append(.media(.activate(isConnected: false))) }
    case .callDigit(let d): if let digit = d.digit.first { actions.append(.digit(digit)) }
    case .quality(let d): actions.append(.quality(d))
    case .mediaRestart(let d): restart(d.gen, d.cause ?? .timeout, &actions)
    default: break
    }
  }

  private mutating func answered(_ tag: RequestTag, _ result: Result<Success, Failure>, _ actions: inout [Action]) {
    switch (tag, result) {
    case (.start, .success(let success)):
      if let sdp = success.sdp { actions.append(.media(.apply(answer: sdp, generation: 1))) }
    case (.prepare, .success):
      isPrepared = true
      answerIfPrepared(&actions)
      if let cause = heldRestart { restart(generation + 1, cause, &actions) }
      heldRestart = nil
    // a description of an older offer, or a second one of this
    case (.prepare, .failure(let failure)) where failure.code == .staleGen || isPrepared: break
    case (.answer, .failure(let failure)), (.prepare, .failure(let failure)): refused(failure, &actions)
    // refused: the new generation does not exist
    case (.restart, .failure): generation = max(1, generation - 1)
    case (.start, .failure(let failure)): end(failure.reason ?? EndReason(failure.code), &actions)
    default: break
    }
  }
}

extension ClientCall {
  /// The call cannot be accepted here. Notifies the gateway if it does not know that yet.
  private mutating func refused(_ failure: Failure, _ actions: inout [Action]) {
    let why = failure.reason ?? EndReason(failure.code)
    switch failure.code {
    case .gone, .answeredElsewhere, .codec: end(why, &actions)
    default: withdraw(why, &actions)
    }
  }
}

extension MediaActive {
  public static let running = MediaActive(capture: true, playout: true)
  public static let idle = MediaActive(capture: false, playout: false)
}

extension EndReason {
  /// The end reason for a refused `call.answer` or `call.start`.
  init(_ code: ErrorCode) {
    self =
      switch code {
      case .answeredElsewhere: .answeredElsewhere
      case .notFound: .notFound
      case .forbidden, .callerNumber, .emergency: .forbidden
      case .codec: .codec
      case .auth, .revoked: .auth
      case .busy: .busy
      case .overload, .tooMany: .overload
      case .server: .server
      case .badRequest, .unsupported, .badState, .gone, .staleGen: .unknown
      }
  }
}
