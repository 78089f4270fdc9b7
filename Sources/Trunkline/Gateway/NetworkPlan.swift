import Configuration
import MediaThreads
import TrunklineBytes
import TrunklinePlatform

/// The configuration applied to the machine's current addresses: a value, computed again for each change of the network.
struct NetworkPlan: Equatable {
  /// Media addresses; empty while the machine has none that is usable.
  var media: [MediaPlaneConfiguration.Address] = []
  var localNetworks = LocalNetworks()
  /// Addresses of our listeners and media; all of this machine if one of them listens on all.
  var own: Set<IPAddress> = []
  /// The machine's addresses, without loopback.
  var outside: [IPAddress] = []
  /// The machine's addresses as the system reported them.
  private(set) var machine = MachineAddresses()
  /// Addresses of listeners that the machine does not have.
  var absent: Set<IPAddress> = []
  /// The addresses that are missing.
  var waits: [Wait] = []

  struct Wait: Equatable {
    var text: String
    /// There is no substitute: no call is possible while it is missing.
    var isVital: Bool
    /// An address that the operator named, which `--check` reports separately.
    var isNamed = false
  }

  init(on machine: MachineAddresses = MachineAddresses()) { self.machine = machine }

  /// Whether an address of ours that calls use still works; costs system calls if no interface that is up has it.
  func isHere(_ ip: IPAddress) -> Bool { ip.isLoopback || ip.isUnspecified || machine.serves(ip) ?? isBindable(ip) }

  /// Why calls are impossible; nil if every vital address exists.
  var reason: String? { text(of: waits.filter(\.isVital)) }
  /// The missing addresses that are not vital.
  var note: String? { text(of: waits.filter { !$0.isVital }) }
  private func text(of waits: [Wait]) -> String? { waits.isEmpty ? nil : waits.map(\.text).joined(separator: "; ") }
}

/// System calls that a plan needs beside the machine's addresses; tests replace them.
struct NetworkQuestions {
  /// Whether a socket can be bound to an address that no interface has.
  var isBindable: (IPAddress) -> Bool = { TrunklinePlatform.isBindable($0) }
  /// Our address on the route to another.
  var route: (IPAddress) -> IPAddress? = { routeAddress(toward: SocketAddress($0, 0)) }
  /// A name's address.
  var find: (String, IPAddress.Family) -> IPAddress?
}

extension Settings {
  func networkPlan(on machine: MachineAddresses, _ system: NetworkQuestions) -> NetworkPlan {
    var plan = NetworkPlan(on: machine)
    plan.outside = machine.usable()
    plan.localNetworks = LocalNetworks(
      localNetworks.flatMap { network in
        switch network {
        case .interfaces: machine.networks
        case .network(let network): [network]
        }
      })
    planMedia(machine, system, &plan)
    planListeners(machine, system, &plan)
    plan.own = ownAddresses(on: machine)
    return plan
  }

  /// True if a peer on another machine must be reached. Apps may be behind a proxy on this one. A gateway whose trunks are all on
  /// this machine has no address to wait for; nor has one whose media is bound to loopback alone, as no outside peer could
  /// exchange audio with it.
  private var needsOutside: Bool {
    let isLoopbackOnly = media.addresses.allSatisfy {
      if case .fixed(let bind, nil) = $0 { bind.isLoopback } else { false }
    }
    if isLoopbackOnly { return false }
    guard listen.app.ip.isLoopback else { return true }
    return trunks.contains { trunk in
      if let server = trunk.serverAddress { return !server.ip.isLoopback }
      if trunk.acceptsAnyPeer || !trunk.routing.peerNames.isEmpty { return true }
      return trunk.peers.isEmpty ? trunk.uri != nil : trunk.peers.contains { !$0.address.isLoopback }
    }
  }

  // MARK: media

  private func planMedia(_ machine: MachineAddresses, _ system: NetworkQuestions, _ plan: inout NetworkPlan) {
    var (found, waits): ([MediaPlaneConfiguration.Address], [NetworkPlan.Wait]) = ([], [])
    /// Loopback is used while another address is missing, but reaches no outside peer.
    var isStopgap = false
    for address in media.addresses {
      switch address {
      case .automatic(let host):
        var own = automaticAddresses(machine).map { MediaPlaneConfiguration.Address(bind: $0) }
        if plan.outside.isEmpty, needsOutside {
          waits.append(Self.wait("media.addresses: auto finds no address at an interface that is up and has a carrier"))
          isStopgap = !own.isEmpty
        } else if let host, let why = advertise(host, &own, system) {
          waits.append(Self.wait("media.addresses: advertise: \(why)"))
          own = []
        }
        found += own
      case .fixed(let bind, let host):
        guard isHere(bind, machine, system) else {
          waits.append(Self.wait("media.addresses: \(bind) is at no interface that is up and has a carrier", isNamed: true))
          continue
        }
        if bind.isUnspecified, plan.outside.isEmpty, needsOutside {
          waits.append(Self.wait("media.addresses: no interface that is up and has a carrier has an address"))
          continue
        }
        guard let advertised = host.map({ $0.address ?? system.find($0.host, bind.family) }) ?? bind else {
          waits.append(Self.wait("media.addresses: advertise: \(Self.unknown(host, bind.family))"))
          continue
        }
        found.append(.init(bind: bind, advertise: advertised))
      }
    }
    let translated = Set(found.filter { $0.advertise != $0.bind }.map(\.bind))
    var seen: Set<IPAddress> = []
    plan.media = found.filter { $0.advertise != $0.bind || !translated.contains($0.bind) }
      .filter { seen.insert($0.advertise).inserted }
    let isVital = plan.media.isEmpty || (isStopgap && plan.media.allSatisfy(\.bind.isLoopback))
    plan.waits += waits.map { wait in
      var wait = wait
      wait.isVital = isVital
      return wait
    }
    if plan.media.isEmpty, waits.isEmpty {
      plan.waits.append(.init(text: "media.addresses: auto finds no address on this machine", isVital: true))
    }
  }

  private static func wait(_ text: String, isNamed: Bool = false) -> NetworkPlan.Wait {
    .init(text: text, isVital: false, isNamed: isNamed)
  }

  /// The machine's own addresses. Loopback is the last, and only for trunks on this machine, or if no outside peer must be
  /// reached: apps never use it for ICE.
  private func automaticAddresses(_ machine: MachineAddresses) -> [IPAddress] {
    let loopbackTrunk = trunks.contains { trunk in trunk.peers.contains { $0.address.isLoopback } }
    return machine.usable(loopback: loopbackTrunk ? true : needsOutside ? false : nil)
  }

  /// Advertises `host` for the one of our addresses that is on the route to it.
  /// - Returns: why no address could be replaced; nil: one was.
  private func advertise(_ host: AdvertisedHost, _ own: inout [MediaPlaneConfiguration.Address], _ system: NetworkQuestions)
    -> String?
  {
    let families = Set(own.map(\.bind.family))
    let wanted: [IPAddress.Family] = families.contains(.v4) ? [.v4, .v6].filter { families.contains($0) } : [.v6]
    guard let address = host.address ?? wanted.lazy.compactMap({ system.find(host.host, $0) }).first else {
      return Self.unknown(host, wanted[0])
    }
    let route = system.route(address)
    let index = own.firstIndex { $0.bind == route } ?? own.firstIndex { $0.bind.family == address.family && !$0.bind.isLoopback }
    guard let index else { return "\(host): no address of this machine is of its family" }
    own[index].advertise = address
    return nil
  }

  private static func unknown(_ host: AdvertisedHost?, _ family: IPAddress.Family) -> String {
    "\(host.map { "\($0)" } ?? "") has no \(family == .v4 ? "IPv4" : "IPv6") address in DNS; write the address, or mend the name"
  }

  // MARK: listeners

  private func planListeners(_ machine: MachineAddresses, _ system: NetworkQuestions, _ plan: inout NetworkPlan) {
    let sip =
      listen.sipUDP.map { ("listen.sip.udp", $0.ip) } + listen.sipTCP.map { ("listen.sip.tcp", $0.ip) }
      + listen.sipTLS.map { ("listen.sip.tls", $0.ip) }
    func missing(_ ip: IPAddress) -> Bool { !ip.isUnspecified && !isHere(ip, machine, system) }
    let gone = sip.filter { missing($0.1) }
    plan.absent = Set(gone.map(\.1))
    for (setting, ip) in gone { plan.waits.append(Self.absence(setting, ip, isVital: gone.count == sip.count)) }
    let (wildcards, all) = ((sip.map(\.1) + [listen.app.ip]).filter(\.isUnspecified), sip.map(\.1) + [listen.app.ip])
    if plan.outside.isEmpty, needsOutside, wildcards.count > 0 {
      let isVital = listen.app.ip.isUnspecified || !all.dropLast().contains { !$0.isUnspecified && !missing($0) }
      plan.waits.append(.init(text: "listen: no interface that is up and has a carrier has an address", isVital: isVital))
    }
    if missing(listen.app.ip) { plan.waits.append(Self.absence("listen.app", listen.app.ip, isVital: true)) }
    if missing(listen.admin.ip) { plan.waits.append(Self.absence("listen.admin", listen.admin.ip, isVital: false)) }
  }

  private static func absence(_ setting: String, _ ip: IPAddress, isVital: Bool) -> NetworkPlan.Wait {
    .init(text: "\(setting): \(ip) is at no interface that is up and has a carrier", isVital: isVital, isNamed: true)
  }

  private func isHere(_ ip: IPAddress, _ machine: MachineAddresses, _ system: NetworkQuestions) -> Bool {
    if ip.isUnspecified { return true }
    return machine.serves(ip) ?? system.isBindable(ip)
  }

  /// The addresses of our listeners and media; all of this machine if one of them listens on all.
  private func ownAddresses(on machine: MachineAddresses) -> Set<IPAddress> {
    var all = (listen.sipUDP + listen.sipTCP + listen.sipTLS + [listen.app, listen.admin]).map(\.ip)
    for address in media.addresses { if case .fixed(let bind, _) = address { all.append(bind) } }
    all += advertisedHosts.compactMap(\.address)
    let listensEverywhere =
      all.contains(where: \.isUnspecified) || media.addresses.contains { if case .automatic = $0 { true } else { false } }
    if listensEverywhere { all += machine.usable(loopback: true) }
    return Set(all.filter { !$0.isUnspecified }.map(\.unmapped))
  }
}
