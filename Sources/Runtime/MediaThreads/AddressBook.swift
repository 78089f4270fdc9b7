import Bytes
import Glibc
import MediaSession
import Platform

/// Which addresses media is offered at now, and the ports of the app sockets there. A value: each call reads one state of it.
struct AddressBook {
  var current: [MediaPlaneConfiguration.Address] = []
  var localNetworks = LocalNetworks()
  /// The port of each thread's app socket, by what it is bound to; also of absent addresses.
  private(set) var ports: [IPAddress: [UInt16]] = [:]
  /// Addresses that are not in `current` any longer and whose sockets are kept, the one that went first before the others.
  private(set) var absent: [IPAddress] = []

  /// App sockets were bound.
  mutating func add(_ address: IPAddress, ports new: [UInt16]) { ports[address] = new }

  /// - Returns: the addresses whose sockets are no longer offered: so many have been removed since.
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

  /// What apps are offered: where a translator or a container's host takes media for us, and for who is behind it too, our own address.
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

  /// The address in place of another, of its family, on the way to a peer; nil: there is none, or it is the same.
  func successor(of bound: IPAddress, toward peer: IPAddress) -> MediaPlaneConfiguration.Address? {
    // from loopback nothing reaches another machine
    let choices = current.filter { $0.bind.family == bound.family && (!$0.bind.isLoopback || peer.isLoopback) }
    if choices.contains(where: { $0.bind == bound }), choices.count == 1 || peer.isUnspecified { return nil }
    // a peer that holds by 0.0.0.0 is on no way
    if choices.count == 1 || peer.isUnspecified { return choices.first }
    guard let route = routeAddress(toward: SocketAddress(peer, 0)), route != bound else { return nil }
    return choices.first { $0.bind == route }
  }

  /// The address our trunk RTP comes from: the one the route to the peer uses, else the first of its family, else the first; nil without any.
  /// Where that route is also the one of the signalling, the address that the signalling came to. Costs system calls where there are several of
  /// one family.
  func address(toward peer: IPAddress?, asked: (own: IPAddress, peer: IPAddress)? = nil) -> MediaPlaneConfiguration.Address? {
    guard let peer else { return current.first }
    let family = current.filter { $0.bind.family == peer.family }
    // The only one of its family needs no question to the kernel, which would be three system calls for each call.
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
  /// Those that media is offered at now.
  public var addresses: [MediaPlaneConfiguration.Address] { state.withLock { $0.addresses.current } }

  /// The address that a trunk is told; nil while there is none. Any thread; costs system calls where there are several of one family.
  public func address(advertisedTo trunk: IPAddress) -> IPAddress? {
    let book = state.withLock { $0.addresses }
    return book.address(toward: trunk).map { book.advertised($0, trunk) }
  }

  /// What apps are offered at now, by media thread. Any thread.
  public var appCandidates: [[SocketAddress]] {
    let book = state.withLock { $0.addresses }
    return workers.map { book.candidates(thread: $0.index) }
  }

  /// A trunk leg whose address the machine no longer has continues with ports at another of its family, if there is one on the way to the trunk, and follows
  /// that way from then on; the trunk is to be told. One thread, that of `reserve`; costs system calls.
  /// - Parameter isHere: whether the machine has an address that calls are not offered any longer.
  /// - Returns: where the trunk is to send from now on; nil: where it did.
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

  /// Calls from now on use these addresses; those under way keep theirs, for as long as the machine has them. Opens the app sockets of addresses
  /// that are new, which costs system calls. One thread at a time.
  /// - Parameter addresses: each once by what is bound.
  /// - Returns: why some are left out: a port is taken.
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
