import AppProtocol
import Bytes
import MediaSession
import SIPDialogs

/// A call that a program has in an app's place: the trunk is answered once the WebSocket is open, as with an app's media.
extension Call {
  struct Stream {
    let target: StreamTarget
    let audio = AudioStream()
    var isOpen = false
  }

  /// Nobody rings: the stream has the call. `answering` is left by `streamOpened`, its end, or the deadline.
  mutating func openStream(_ target: StreamTarget, _ turn: inout Turn) {
    let stream = Stream(target: target)
    appMedia.stream = stream
    bookkeeping.stream = target.url.withoutQuery
    enter(.answering, &turn)
    mark(.answered, detail: "stream", &turn)
    timers[.gate] = turn.now + Self.streamTimeout
    var parameters = parties.parameters?.values ?? [:]
    // nobody outside says these in our place
    for name in parameters.keys where ["call", "to", "trunk", "from"].contains(name.lowercased()) { parameters[name] = nil }
    (parameters["call"], parameters["to"], parameters["trunk"]) = (id.description, parties.calledNumber, trunk.name)
    if !parties.isPrivate { parameters["from"] = parties.callerNumber }
    turn.output.actions.append(
      .stream(.open(StreamRequest(id, target, parameters: parameters, stream: stream.audio))))
  }

  /// More than a stream takes to be opened or refused.
  private static let streamTimeout = Duration.seconds(5)

  /// Media is reserved for a call whose route is a stream.
  mutating func offerStream(_ target: StreamTarget, _ reservation: MediaReservation, _ turn: inout Turn) {
    guard let intake, take(reservation, intake, &turn) else { return }
    openStream(target, &turn)
  }

  mutating func hear(_ news: StreamNews, _ turn: inout Turn) {
    guard isLive, let stream = appMedia.stream else { return }
    switch news {
    case .opened:
      guard state == .answering, !stream.isOpen else { return }
      appMedia.stream?.isOpen = true
      answerForStream(&turn)
    case .refused(_, let why):
      appMedia.stream = nil
      timers[.gate] = nil
      endUnlessDiverted(.mediaFailed, .init(.mediaFailed, by: .app, q850: 41, detail: "stream: " + why), &turn)
    case .ended(_, let why, let isByPeer):
      appMedia.stream = nil
      end(isByPeer ? .localEnd : .networkLost, by: .app, detail: "stream: " + why, &turn)
    }
  }

  /// 200, once the peer is there and the start line is on disk.
  mutating func answerForStream(_ turn: inout Turn) {
    guard state == .answering, appMedia.stream?.isOpen == true, bookkeeping.isJournalled else { return }
    timers[.gate] = nil
    markOnce(.gateOpen, &turn)
    sendAnswer(&turn)
  }

  /// Both ends have media: audio flows.
  mutating func joinStream(_ turn: inout Turn) {
    guard let stream = appMedia.stream else { return }
    turn.media(.stream(session, stream.audio))
  }

  mutating func closeStream(_ turn: inout Turn) {
    guard appMedia.stream != nil else { return }
    appMedia.stream = nil
    turn.output.actions.append(.stream(.close(id)))
  }
}

extension CallMachine {
  /// A call whose route is a stream needs media as any other; calls of streams are on all media threads.
  mutating func reserve(_ call: Call, for target: StreamTarget, toward: IPAddress, _ turn: inout Turn) {
    pending[call.id] = .stream(call, target)
    turn.output.actions.append(
      .reserveMedia(
        MediaRequest(call.id, session: call.session, user: call.id.description, toward: toward, asked: call.intake?.invite.source)
      ))
  }

  /// A program gives a call that waits for an answer to a stream: what rings hears that it is over.
  mutating func stream(_ id: CallID, _ url: StreamURL, _ format: StreamTarget.Format, _ turn: inout Turn) -> Failure? {
    guard let call = calls[id], call.direction == .incoming, call.isUndecided, call.appMedia.reservation != nil else {
      return Failure(.badState, msg: "only an unanswered incoming call can be connected to a stream")
    }
    guard let target = routing.streamTarget(url, format) else {
      return Failure(.forbidden, msg: "streams may go to the hosts of routes.stream_hosts and of routes' own streams alone")
    }
    change(id, &turn) { $0.giveToStream(target, &$1) }
    return nil
  }
}

extension Call {
  /// The lock is the stream's.
  mutating func giveToStream(_ target: StreamTarget, _ turn: inout Turn) {
    for timer in [CallTimer.ring, .unreached, .push, .early180, .vanished] { timers[timer] = nil }
    tellDevices(.answeredElsewhere, others: .answeredElsewhere, by: .gateway, &turn)
    for device in devices { turn.media(.removeAppLeg(session, device.id)) }
    (devices, pushes, bookkeeping.declines) = ([], [], Declines())
    (parties.isVerifying, timers[.verification]) = (false, nil)
    openStream(target, &turn)
  }
}
