import Foundation
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineDTLS
import TrunklineTURN

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The one thread of all media: sockets, ICE, DTLS, SRTP, jitter buffers and codecs of every call. The engine sends commands by a
/// mailbox; a closure returns reports.
final class MediaThread: Sendable {
  enum Command: Sendable {
    case call(Identifier, ClientCall.MediaRequest)
    /// The call that the device's rings belong to.
    case listen(Identifier?)
    /// Further calls that share the microphone, and are mixed with that one; at most `MediaLimits.mixedCalls`.
    case mix([Identifier])
    /// The test call of a preflight: it sends a tone, and what it receives is not played.
    case test(Identifier?)
    /// True if audio runs: frames are exchanged with the rings.
    case audio(Bool)
    /// TURN servers for paths that are made from now on.
    case relays([TURNServer])
    case stop
  }
  enum Report: Sendable {
    case media(Identifier, ClientCall.MediaReport)
    case statistics(Identifier, ClientMedia.Statistics)
    /// The call's media has ended; these are its last statistics.
    case closed(Identifier, ClientMedia.Statistics)
  }

  /// An event of a call's connection to a TURN server.
  struct RelayNews: Sendable {
    let call: Identifier
    let connection: Int
    let event: RelayEvent

    func isEnd(of other: RelayNews) -> Bool {
      guard case .closed = event else { return false }
      return call == other.call && connection == other.connection
    }
  }

  private let commands = Mutex<[Command]>([])
  private let relayEvents = Mutex<[RelayNews]>([])
  private let wakeUp: (read: Int32, write: Int32)
  let handle: AudioHandle
  let identity: DTLSIdentity
  /// Opens connections to TURN servers.
  let sockets: (any SocketConnector)?
  /// The gateway is on this machine: its addresses are tried from loopback too.
  let withLoopback = Atomic<Bool>(false)
  private let report: @Sendable (Report) -> Void

  /// Nil: the process has no descriptor or memory left.
  init?(_ handle: AudioHandle, sockets: (any SocketConnector)? = nil, report: @escaping @Sendable (Report) -> Void) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0, let identity = try? DTLSIdentity() else { return nil }
    for fd in ends {
      _ = fcntl(fd, F_SETFL, O_NONBLOCK)
      _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
    }
    (wakeUp, self.handle, self.identity) = ((ends[0], ends[1]), handle, identity)
    (self.report, self.sockets) = (report, sockets)
  }

  deinit {
    close(wakeUp.read)
    close(wakeUp.write)
  }

  func start() {
    let thread = namedThread("trunkline-media") { [self] in MediaLoop(self, wakeUp.read, report).run() }
    thread.qualityOfService = .userInteractive
    thread.start()
  }

  /// Any thread. Beyond the limit a command is dropped: the thread is then unresponsive, and the call fails by its deadlines.
  func give(_ command: Command) {
    let isFirst = commands.withLock { commands -> Bool in
      guard commands.count < MediaLimits.commands else { return false }
      commands.append(command)
      return commands.count == 1
    }
    if isFirst { wake() }
  }

  private func wake() {
    var byte: UInt8 = 1
    _ = write(wakeUp.write, &byte, 1)
  }

  /// Any thread. Beyond the limit only events that open or end a connection are accepted.
  /// - Returns: false: it was dropped, and a stream now has a gap.
  func give(_ news: RelayNews) -> Bool {
    var (isData, isEnd) = (false, false)
    switch news.event {
    case .opened: break
    case .received: isData = true
    case .closed: isEnd = true
    }
    let (isUsed, isFirst) = relayEvents.withLock { events -> (Bool, Bool) in
      guard !isData || events.count < MediaLimits.relayEvents else { return (false, false) }
      // one end is sufficient: while the thread is unresponsive, each piece of a stream may cause one
      if isEnd, events.contains(where: { $0.isEnd(of: news) }) { return (true, false) }
      events.append(news)
      return (true, events.count == 1)
    }
    if isFirst { wake() }
    return isUsed
  }

  func drainRelayNews() -> [RelayNews] {
    relayEvents.withLock { events in
      defer { events.removeAll(keepingCapacity: true) }
      return events
    }
  }

  func drainCommands() -> [Command] {
    commands.withLock { commands in
      defer { commands.removeAll(keepingCapacity: true) }
      return commands
    }
  }
}
