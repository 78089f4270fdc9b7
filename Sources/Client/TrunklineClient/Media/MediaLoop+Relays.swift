import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineTURN

/// Connections to TURN servers: each is on a thread of its own, which gives its news to the media thread.
extension MediaLoop {
  func handleRelayed(_ id: Identifier, _ live: Live) {
    for (number, server) in output.connects { connect(number, to: server, of: id, live: live) }
    output.forEachRelayed { bytes, number in live.relays[number]?.send(Array(bytes)) }
    for number in output.disconnects { live.relays.removeValue(forKey: number)?.close() }
  }

  private func connect(_ number: Int, to server: TURNServer, of id: Identifier, live: Live) {
    let (address, thread) = (RelayAddress(server), thread)
    func give(_ event: RelayEvent) -> Bool { thread.give(.init(call: id, connection: number, event: event)) }
    let made = thread.sockets?.openRelay(address) { [weak thread] event in
      guard let thread else { return }
      let isAccepted = thread.give(.init(call: id, connection: number, event: event))
      // the stream has a gap
      if !isAccepted, address.transport != .udp {
        _ = thread.give(.init(call: id, connection: number, event: .closed("too much waits")))
      }
    }
    if let made { live.relays[number] = made } else { _ = give(.closed("no connection to be had")) }
  }

  func handle(_ news: MediaThread.RelayNews) {
    guard let live = calls[news.call] else { return }
    let now = MonotonicTime.now()
    switch news.event {
    case .opened: live.media.relayOpened(news.connection, at: now, into: &output)
    case .received(let bytes): live.media.relayReceived(news.connection, bytes, at: now, into: &output)
    case .closed(let why):
      live.relays.removeValue(forKey: news.connection)?.close()
      live.media.relayClosed(news.connection, why, at: now, into: &output)
    }
    update(news.call, live, now)
  }
}
