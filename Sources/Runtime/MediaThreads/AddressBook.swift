import Glibc
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform

/// The addresses that media is offered at now, and the ports of the app sockets there. A value: each call reads one state of it.
struct AddressBook {
  var current: [MediaPlaneConfiguration.Address] = []
  var localNetworks = LocalNetworks()
  /// The port of each thread's app socket, by its bound address; also of absent addresses.
  private(set) var ports: [IPAddress: [UInt16]] = [:]
  /// Addresses that are no longer in `current` and whose sockets are kept, in the order of their removal.
  private(set) var absent: [IPAddress] = []

  /// App sockets were bound.
  mutating func add(_ address: IPAddress, ports new: [UInt16]) { ports[address] = new }

  /// - Returns: the addresses whose sockets will never be offered again, because so many were removed since.
  mutating func use(_ addresses: [MediaPlaneConfiguration.Address]) -> [IPAddress] {
    let (before, now) = (current.map(\.bind), addresses.map(\.bind))
    current = addresses
    absent.removeAll { now.contains($0) }
    for bind in before where !now.contains(bind) && !absent.contains(bind) { absent.append(bind) }
    let retired = Array(absent.prefix(max(0, absent.count - Limits.absentAddresses)))
    absent.removeFirst(retired.count)
    for bind in retired { ports[bind] = nil }
    return retired
  }

  /// The candidates for apps: the address where a translator or a container's host receives media for us, and our own one for
  /// peers behind it, too.
  func candidates(thread: Int) -> [SocketAddress] {
    current.flatMap { address -> [SocketAddress] in
      guard let port = ports[address.bind]?[thread] else { return [] }
      let isHidden = address.advertise == address.bind || address.bind.isLoopback || address.bind.isUnspecified
      return (isHidden ? [address.advertise] : [address.advertise, address.bind]).map { SocketAddress($0, port) }
    }
  }

  func advertised(_ address: MediaPlaneConfiguration.Address, _ trunk: IPAddress?) -> IPAddress {
    if trunk?.isLoopback == true, address.bind.isUnspecified { return address.bind.family == .v4 ? .loopback : .loopback6 }
    let isLocal = trunk.map(localNetworks.contains) == true && !address.bind.isUnspecified
    return isLocal ? address.bind : address.advertise
  }

  /// The address that replaces another, of its family, on the route to a peer; nil: there is none, or it is the same.
  func successor(of bound: IPAddress, toward peer: IPAddress) -> MediaPlaneConfiguration.Address? {
    // From loopback no other machine can be reached.
    let choices = current.filter { $0.bind.family == bound.family && (!$0.bind.isLoopback || peer.isLoopback) }
    if choices.contains(where: { $0.bind == bound }), choices.count == 1 || peer.isUnspecified { return nil }
    // A peer that holds by 0.0.0.0 has no route.
    if choices.count == 1 || peer.isUnspecified { return choices.first }
    guard let route = routeAddress(toward: SocketAddress(peer, 0)), route != bound else { return nil }
    return choices.first { $0.bind == route }
  }

  /// The source address of our trunk RTP: the one that the route to the peer uses, else the first of its family, else the first;
  /// nil without any. If signalling uses the same route, the address that the signalling came to. Costs system calls if there are
  /// several of one family.
  func address(toward peer: IPAddress?, asked: (own: IPAddress, peer: IPAddress)? = nil) -> MediaPlaneConfiguration.Address? {
    guard let peer else { return current.first }
    let family = current.filter { $0.bind.family == peer.family }
    // The only one of its family needs no query to the kernel, which would be three system calls for each call.
    guard family.count != 1 else { return family[0] }
    guard let route = routeAddress(toward: SocketAddress(peer, 0)) else { return family.first ?? current.first }
    if let asked, asked.own != route, let own = family.first(where: { $0.bind == asked.own }),
      asked.peer == peer || routeAddress(toward: SocketAddress(asked.peer, 0)) == route
    {
      return own
    }
    return current.first { $0.bind == route } ?? current.first { $0.bind.isUnspecified && $0.bind.family == route.family }
      ?? family.first ?? current.first
  }
}

extension MediaPlane {
  /// The addresses that media is offered at now.
  public var addresses: [MediaPlaneConfiguration.Address] { state.withLock { $0.addresses.current } }

  /// The address that a trunk is sent; nil while there is none. Any thread; costs system calls if there are several of one
  /// family.
  public func address(advertisedTo trunk: IPAddress) -> IPAddress? {
    let book = state.withLock { $0.addresses }
    return book.address(toward: trunk).map { book.advertised($0, trunk) }
  }

  /// The candidates for apps now, by media thread. Any thread.
  public var appCandidates: [[SocketAddress]] {
    let book = state.withLock { $0.addresses }
    return workers.map { book.candidates(thread: $0.index) }
  }

  /// Moves a trunk leg whose address was removed from the machine to ports at another of its family, if there is one on the route
  /// to the trunk; the leg follows that route from then on, and the trunk must be notified. One thread, that of `reserve`; costs
  /// system calls.
  /// - Parameter isHere: whether the machine still has an address that is no longer offered to calls.
  /// - Returns: where the trunk must send from now on; nil: unchanged.
  public func move(session: MediaSessionID, toward trunk: IPAddress, isHere: (IPAddress) -> Bool) throws(MediaReservationError)
    -> SocketAddress?
  {
    let (index, bound, book) = state.withLock { ($0.threadOf[session], $0.boundTo[session], $0.addresses) }
    guard let index, let bound, !bound.ip.isUnspecified,
      bound.hasMoved || !(book.current.contains { $0.bind == bound.ip } || isHere(bound.ip)),
      let address = book.successor(of: bound.ip, toward: trunk)
    else { return nil }
    let sockets = try ports.reserve(on: address.bind)
    guard workers[index].mailbox.post(.move(session, sockets)) else {
      metrics.undelivered.increment()
      throw .threadFull
    }
    state.withLock { $0.boundTo[session] = (address.bind, true) }
    return SocketAddress(book.advertised(address, trunk), sockets.rtp.localAddress.port)
  }

  /// New calls use these addresses from now on; present ones keep theirs as long as the machine has them. Opens the app sockets
  /// of new addresses, which costs system calls. One thread at a time.
  /// - Parameter addresses: each bound address once.
  /// - Returns: why some are left out: a port is in use.
  public func use(_ addresses: [MediaPlaneConfiguration.Address], localNetworks: LocalNetworks) -> [SystemError] {
    var refused: [SystemError] = []
    var usable: [MediaPlaneConfiguration.Address] = []
    for address in addresses {
      do throws(SystemError) {
        if state.withLock({ $0.addresses.ports[address.bind] == nil }) { try listen(address.bind) }
        usable.append(address)
      } catch { refused.append(error) }
    }
    let retired = state.withLock { state in
      state.addresses.localNetworks = localNetworks
      return state.addresses.use(usable)
    }
    for address in retired {
      ports.forget(address)
      for worker in workers { _ = worker.mailbox.post(.retire(address)) }
    }
    metrics.listening.set(Int64(usable.count))
    metrics.watch(ports, limit: ports.limit(addresses: usable.count))
    return refused
  }

  /// One app socket for each thread, or none.
  private func listen(_ address: IPAddress) throws(SystemError) {
    var sockets: [UDPSocket] = []
    for worker in workers {
      let port = configuration.appPort == 0 ? 0 : configuration.appPort &+ UInt16(worker.index)
      sockets.append(
        try UDPSocket(
          bind: SocketAddress(address, port), receiveBufferBytes: Limits.appSocketBuffer,
          sendBufferBytes: Limits.appSocketBuffer, setting: "media.app_port", waitsForAddress: true))
    }
    for (worker, socket) in zip(workers, sockets) where !worker.mailbox.post(.listen(socket)) {
      for worker in workers { _ = worker.mailbox.post(.retire(address)) }
      throw SystemError("hand a socket to a media thread", address: socket.localAddress, code: ENOBUFS)
    }
    state.withLock { $0.addresses.add(address, ports: sockets.map(\.localAddress.port)) }
  }
}
