import Configuration
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPTransport

/// The peers that SIP is accepted from, and the TLS settings toward them: the trunks of the present configuration, removed ones
/// that still have calls, the servers that DNS found, and other nodes. On the control thread.
final class TrunkPeers {
  private static let locatedAddresses = 256

  private let sip: SIPComponent
  private let control: ControlReference
  private let loop: EventLoop
  private let views: PeersLog
  /// The last configuration that SIGHUP applied; its `listen` is not used: that of the start stays in force.
  private var current: Settings
  private var retired: RetiredTrunks
  private var retirement: EventLoop.TimerID?
  private var located: [String: [SocketAddress]] = [:]
  private var nodes: [SocketAddress] = []

  init(_ settings: Settings, sip: SIPComponent, views: PeersLog, control: ControlReference, loop: EventLoop) {
    (self.sip, self.views, self.control, self.loop) = (sip, views, control, loop)
    current = settings
    retired = RetiredTrunks(settings.trunks)
  }

  /// DNS has new servers for a trunk. The earlier ones are kept: calls may use them.
  func located(_ trunk: String, _ addresses: [SocketAddress]) {
    var all = located[trunk] ?? []
    for address in addresses where !all.contains(address) { all.append(address) }
    located[trunk] = Array(all.suffix(Self.locatedAddresses))
    admit()
    logViews()
  }

  /// The other nodes of the cluster, whose OPTIONS are answered.
  func replaceNodes(_ addresses: Set<SocketAddress>) {
    nodes = addresses.sorted { $0.description < $1.description }
    admit()
  }

  /// Applies a new configuration. A trunk that was removed from the file is admitted until its last call has ended, so that its
  /// BYE is accepted.
  func replace(with new: Settings) {
    current = new
    retired.replace(with: new.trunks, at: loop.now)
    readTLS()
    dropFinished()
    logViews()
  }

  /// Reads the certificates again; also for retired trunks: their BYE may need a new connection.
  func readTLS() {
    var all = current
    all.trunks = retired.admitted
    sip.setTLS(trunks: all.clientTLS)
  }

  /// Logs the addresses that peers see, if they have changed since the last line.
  func logViews() { views.update(current.trunks, located: located) }

  /// Admits the listed peers of every trunk, and the servers found by its name, whose answers must be received.
  private func admit() {
    var list = AllowList(
      retired.admitted.map { ($0.name, $0.peers) },
      servers: retired.admitted.map { ($0.name, $0.servers(located: located[$0.name] ?? [])) })
    list.anyPeer = retired.admitted.first(where: \.acceptsAnyPeer)?.name
    list.edges = current.edgePeers
    list.nodes = nodes
    sip.sockets.replaceTrunks(list)
  }

  /// Updates the allow-list, and checks the calls of retired trunks while there are any.
  private func dropFinished() {
    admit()
    guard retired.hasRetired else { return }
    if retired.drop(except: control.control?.trunksWithCalls ?? [], at: loop.now) { admit() }
    guard retired.hasRetired else { return }
    if retirement == nil { retirement = loop.addTimer("retired trunks") { [weak self] in self?.dropFinished() } }
    if let retirement { loop.setTimer(retirement, at: loop.now + RetiredTrunks.interval) }
  }
}
