import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// A call that a program handles in place of an app: the trunk is answered once the WebSocket is open, as with an app's media.
extension Call {
  /// No device rings: the stream has the call. The call leaves `answering` by a `StreamNews`, by its end or at the deadline.
  mutating func openStream(_ target: StreamTarget, _ step: inout Step) {
    let audio = stream.begin(target)
    enter(.answering, &step)
    mark(.answered, detail: "stream", &step)
    gate.wait(until: step.now + Self.streamTimeout)
    var parameters = parties.parameters?.values ?? [:]
    // callers and webhooks cannot set these parameters
    for name in parameters.keys where ["call", "to", "trunk", "from"].contains(name.lowercased()) { parameters[name] = nil }
    (parameters["call"], parameters["to"], parameters["trunk"]) = (id.description, parties.calledNumber, trunk.name)
    if !parties.isPrivate { parameters["from"] = parties.callerNumber }
    step.output.actions.append(
      .stream(.open(StreamRequest(id, target, parameters: parameters, stream: audio))))
  }

  /// More than a stream needs to be opened or refused.
  private static let streamTimeout = Duration.seconds(5)

  /// Media is reserved for a call whose route is a stream.
  mutating func offerStream(_ target: StreamTarget, _ reservation: MediaReservation, _ step: inout Step) {
    guard let intake, accept(reservation, intake, &step) else { return }
    openStream(target, &step)
  }

  mutating func handle(_ news: StreamNews, _ step: inout Step) {
    guard isLive, stream.audio != nil else { return }
    switch news {
    case .opened:
      if state == .answering, stream.opened() { answerForStream(&step) }
    case .refused(_, let why):
      _ = stream.end()
      gate.close()
      endUnlessDiverted(.mediaFailed, .init(.mediaFailed, by: .app, q850: 41, detail: "stream: " + why), &step)
    case .ended(_, let why, let isByPeer):
      _ = stream.end()
      end(isByPeer ? .localEnd : .networkLost, by: .app, detail: "stream: " + why, &step)
    }
  }

  /// Sends the 200, once the peer is connected and the journal entry is on disk.
  mutating func answerForStream(_ step: inout Step) {
    guard state == .answering, stream.isOpen, journal.isOnDisk else { return }
    gate.opened()
    markOnce(.gateOpen, &step)
    sendAnswer(&step)
  }

  /// Both ends have media: connects their audio.
  mutating func joinStream(_ step: inout Step) {
    if let audio = stream.audio { step.media(.stream(session, audio)) }
  }

  mutating func closeStream(_ step: inout Step) {
    if stream.end() { step.output.actions.append(.stream(.close(id))) }
  }
}

extension CallMachine {
  /// Reserves media for a call whose route is a stream. Such calls are spread over all media threads.
  mutating func reserve(_ call: Call, for target: StreamTarget, toward: IPAddress, _ step: inout Step) {
    pending.waitForMedia(call.id, then: .stream(call, target))
    step.output.actions.append(
      .reserveMedia(
        MediaRequest(call.id, session: call.session, user: call.id.description, toward: toward, asked: call.intake?.invite.source)
      ))
  }

  /// A program connects an unanswered call to a stream: devices that ring are notified of its end.
  mutating func stream(_ id: CallID, to url: StreamURL, as format: StreamTarget.Format, _ step: inout Step) -> Failure? {
    guard let call = calls[id], call.direction == .incoming, call.isUndecided, call.reservation != nil else {
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
    ringClock.close()
    notifyDevices(.answeredElsewhere, others: .answeredElsewhere, by: .gateway, &step)
    removeDevices(&step)
    openStream(target, &step)
  }
}
