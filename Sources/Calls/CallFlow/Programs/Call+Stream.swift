import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// A call that a program handles in place of an app: the trunk is answered once the WebSocket is open, as with an app's media.
extension Call {
  struct Stream {
    let target: StreamTarget
    let audio = AudioStream()
    var isOpen = false
  }

  /// No device rings: the stream has the call. The call leaves `answering` by a `StreamNews`, by its end or at the deadline.
  mutating func openStream(_ target: StreamTarget, _ step: inout Step) {
    let stream = Stream(target: target)
    appMedia.stream = stream
    bookkeeping.stream = target.url.withoutQuery
    enter(.answering, &step)
    mark(.answered, detail: "stream", &step)
    timers[.gate] = step.now + Self.streamTimeout
    var parameters = parties.parameters?.values ?? [:]
    // callers and webhooks cannot set these parameters
    for name in parameters.keys where ["call", "to", "trunk", "from"].contains(name.lowercased()) { parameters[name] = nil }
    (parameters["call"], parameters["to"], parameters["trunk"]) = (id.description, parties.calledNumber, trunk.name)
    if !parties.isPrivate { parameters["from"] = parties.callerNumber }
    step.output.actions.append(
      .stream(.open(StreamRequest(id, target, parameters: parameters, stream: stream.audio))))
  }

  /// More than a stream needs to be opened or refused.
  private static let streamTimeout = Duration.seconds(5)

  /// Media is reserved for a call whose route is a stream.
  mutating func offerStream(_ target: StreamTarget, _ reservation: MediaReservation, _ step: inout Step) {
    guard let intake, accept(reservation, intake, &step) else { return }
    openStream(target, &step)
  }

  mutating func handle(_ news: StreamNews, _ step: inout Step) {
    guard isLive, let stream = appMedia.stream else { return }
    switch news {
    case .opened:
      guard state == .answering, !stream.isOpen else { return }
      appMedia.stream?.isOpen = true
      answerForStream(&step)
    case .refused(_, let why):
      appMedia.stream = nil
      timers[.gate] = nil
      endUnlessDiverted(.mediaFailed, .init(.mediaFailed, by: .app, q850: 41, detail: "stream: " + why), &step)
    case .ended(_, let why, let isByPeer):
      appMedia.stream = nil
      end(isByPeer ? .localEnd : .networkLost, by: .app, detail: "stream: " + why, &step)
    }
  }

  /// Sends the 200, once the peer is connected and the journal entry is on disk.
  mutating func answerForStream(_ step: inout Step) {
    guard state == .answering, appMedia.stream?.isOpen == true, bookkeeping.isJournalled else { return }
    timers[.gate] = nil
    markOnce(.gateOpen, &step)
    sendAnswer(&step)
  }

  /// Both ends have media: connects their audio.
  mutating func joinStream(_ step: inout Step) {
    guard let stream = appMedia.stream else { return }
    step.media(.stream(session, stream.audio))
  }

  mutating func closeStream(_ step: inout Step) {
    guard appMedia.stream != nil else { return }
    appMedia.stream = nil
    step.output.actions.append(.stream(.close(id)))
  }
}

extension CallMachine {
  /// Reserves media for a call whose route is a stream. Such calls are spread over all media threads.
  mutating func reserve(_ call: Call, for target: StreamTarget, toward: IPAddress, _ step: inout Step) {
    pending[call.id] = .stream(call, target)
    step.output.actions.append(
      .reserveMedia(
        MediaRequest(call.id, session: call.session, user: call.id.description, toward: toward, asked: call.intake?.invite.source)
      ))
  }

  /// A program connects an unanswered call to a stream: devices that ring are notified of its end.
  mutating func stream(_ id: CallID, _ url: StreamURL, _ format: StreamTarget.Format, _ step: inout Step) -> Failure? {
    guard let call = calls[id], call.direction == .incoming, call.isUndecided, call.appMedia.reservation != nil else {
      return Failure(.badState, msg: "only an unanswered incoming call can be connected to a stream")
    }
    guard let target = routing.streamTarget(url, format) else {
      return Failure(.forbidden, msg: "streams may go to the hosts of routes.stream_hosts and of routes' own streams alone")
    }
    change(id, &step) { $0.giveToStream(target, &$1) }
    return nil
  }
}

extension Call {
  /// Claims the lock for the stream.
  mutating func giveToStream(_ target: StreamTarget, _ step: inout Step) {
    for timer in [CallTimer.ring, .unreached, .push, .early180, .vanished] { timers[timer] = nil }
    notifyDevices(.answeredElsewhere, others: .answeredElsewhere, by: .gateway, &step)
    for device in devices { step.media(.removeAppLeg(session, device.id)) }
    (devices, pushes, bookkeeping.declines) = ([], [], Declines())
    (parties.isVerifying, timers[.verification]) = (false, nil)
    openStream(target, &step)
  }
}
