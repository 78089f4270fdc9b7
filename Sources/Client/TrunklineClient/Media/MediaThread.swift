import AppProtocol
import Bytes
import ClientMachines
import DTLS
import Foundation
import Synchronization
import TURN

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The one thread of all media: sockets, ICE, DTLS, SRTP, jitter buffers and codecs of every call. Orders come from the engine by a mailbox;
/// reports go back by a closure.
final class MediaThread: Sendable {
  enum Command: Sendable {
    case call(Identifier, ClientCall.MediaRequest)
    /// The call that the device's rings belong to.
    case listen(Identifier?)
    /// Further calls that hear the microphone, and are heard with that one; `MediaLimits.mixedCalls` of them.
    case mix([Identifier])
    /// The test call of a preflight: it sends a tone, and what it receives is not played.
    case test(Identifier?)
    /// Audio runs: frames are exchanged with the rings.
    case audio(Bool)
    /// TURN servers for paths that are made from now on.
    case relays([TURNServer])
    case stop
  }
  enum Report: Sendable {
    case media(Identifier, ClientCall.MediaReport)
    case statistics(Identifier, ClientMedia.Statistics)
    /// The call's media is over; these are its last statistics.
    case closed(Identifier, ClientMedia.Statistics)
  }

  /// What a connection to a TURN server has to say to a call.
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

  /// From any thread. Beyond the limit a command is dropped: the thread then hangs, and the call fails by its deadlines.
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

  /// From any thread. Beyond the limit only what opens and ends a connection is taken.
  /// - Returns: false: it was not taken, and a stream has a gap now.
  func give(_ news: RelayNews) -> Bool {
    var (isData, isEnd) = (false, false)
    switch news.event {
    case .opened: break
    case .received: isData = true
    case .closed: isEnd = true
    }
    let (isUsed, isFirst) = relayEvents.withLock { events -> (Bool, Bool) in
      guard !isData || events.count < MediaLimits.relayEvents else { return (false, false) }
      // one end is enough: while the thread hangs each piece of a stream may be one
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
