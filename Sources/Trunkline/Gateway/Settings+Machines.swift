import Bytes
import CallFlow
import CommandSupport
import Configuration
import MediaSession
import MediaThreads
import Platform
import PushPolicy
import SIPDialogs
import SIPTransport
import Trunking

/// What the machines are told, from what the operator wrote.
extension Settings {
  var callConfiguration: CallFlow.Configuration {
    var out = CallFlow.Configuration()
    out.timers.ring = timers.ring
    out.timers.early180 = timers.early180
    out.timers.mediaGateWarm = timers.mediaGateWarm
    out.timers.mediaGateCold = timers.mediaGateCold
    out.timers.mediaGateOutgoing = timers.mediaGateOutgoing
    out.timers.longestCall = timers.longestCall
    out.timers.appLegGrace = timers.appGrace
    out.bounds.calls = limits.calls
    out.bounds.callsPerUser = limits.callsPerUser
    out.declineCode = routes.declineCode
    out.opusBitrate = media.opusBitrate
    out.verifiesIdentity = verifier != nil
    return out
  }

  var allowList: AllowList {
    var list = AllowList(trunks.map { ($0.name, $0.peers) }, servers: trunks.map { ($0.name, $0.servers(located: [])) })
    list.anyPeer = trunks.first(where: \.takesAnyPeer)?.name
    return list
  }

  var routing: Routing {
    var recordings: [String: Announcement] = [:]
    let rows = routes.inbound.map { row in
      let target: Routing.InboundRule.Target =
        switch row.target {
        case .users: .users
        case .user(let id): .user(id)
        case .hook(let hook): .hook(.init(Webhook(url: hook.url, key: hook.key), fallback: hook.fallback.routed))
        }
      var rule = Routing.InboundRule(trunk: row.trunk, target: target)
      rule.diversions = row.diversions.routed(&recordings)
      rule.account = row.account
      return rule
    }
    let own = ownAddresses
    let routed = trunks.map { trunk in
      var out = trunk.routed
      out.ownAddresses = own
      return out
    }
    var out = Routing(
      trunks: routed, users: users.map { $0.routed(&recordings) }, inbound: rows,
      outbound: routes.outbound.map { row in
        .init(
          prefix: row.prefix,
          choices: row.trunks.map { .init(trunk: $0.trunk, priority: $0.priority, weight: UInt64($0.weight)) },
          allowsEmergency: row.allowsEmergency)
      })
    if let emergency = routes.emergencyNumbers { out.emergencyNumbers = Set(emergency) }
    return out
  }

  /// The addresses that our listeners and media are at; of this machine all, where one of them listens on all.
  var ownAddresses: Set<IPAddress> {
    var all = (listen.sipUDP + listen.sipTCP + listen.sipTLS + [listen.app, listen.admin]).map(\.ip)
    for address in media.addresses { if case .fixed(let bind, let advertise) = address { all += [bind, advertise] } }
    let listensEverywhere =
      all.contains(where: \.isUnspecified) || media.addresses.contains { if case .automatic = $0 { true } else { false } }
    if listensEverywhere, let found = try? localAddresses(loopback: true) { all += found }
    return Set(all.filter { !$0.isUnspecified }.map(\.unmapped))
  }

  /// What in-dialog requests may not be led to. `bound`: where the SIP listeners really are, should port 0 have been asked for.
  func own(bound: [SocketAddress]) -> OwnAddresses {
    OwnAddresses(
      addresses: ownAddresses.union(bound.map(\.ip).filter { !$0.isUnspecified }),
      ports: Set((bound + [listen.app, listen.admin]).map(\.port)).subtracting([0]))
  }

  /// What the SIP listeners can carry; `flow` finds the listener and the local address toward a server.
  func network(_ flow: @escaping @Sendable (TransportProtocol, SocketAddress) -> Flow?) -> TrunkMachine.Network {
    var transports: Set<TransportProtocol> = []
    if !listen.sipUDP.isEmpty { transports.insert(.udp) }
    if !listen.sipTCP.isEmpty { transports.insert(.tcp) }
    if !listen.sipTLS.isEmpty { transports.insert(.tls) }
    let families = Set((listen.sipUDP + listen.sipTCP + listen.sipTLS).map(\.ip.family))
    return TrunkMachine.Network(transports: transports, families: families, flow: flow)
  }
}

extension Settings.User {
  fileprivate func routed(_ recordings: inout [String: Announcement]) -> Routing.User {
    var out = Routing.User(
      id: id, numbers: numbers, allowance: .init(prefixes: allow, calls: maximumCalls, callsPerHour: callsPerHour))
    out.diversions = diversions.routed(&recordings)
    (out.numberAccounts, out.account) = (numberAccounts, account)
    (out.name, out.choosesName) = (name, choosesDisplayName)
    return out
  }
}

extension Settings.Routes.Inbound.Hook.Fallback {
  fileprivate var routed: Routing.Hook.Fallback {
    switch self {
    case .users: .users
    case .user(let id): .user(id)
    case .code(let code): .code(code)
    }
  }
}

extension Settings.Diversions {
  /// A recording is kept once, whoever has it.
  fileprivate func routed(_ recordings: inout [String: Announcement]) -> CallFlow.Diversions {
    var out = CallFlow.Diversions()
    for (trigger, rule) in rules {
      let target: CallFlow.Diversions.Target
      switch rule.target {
      case .user(let id): target = .user(id)
      case .number(let number, let showsCaller): target = .number(number, showsCaller: showsCaller)
      case .code(let code): target = .code(code)
      case .play(let path, let samples, let isEarly, let shows):
        let audio = recordings[path] ?? Announcement(samples: samples)
        recordings[path] = audio
        let name = path.split(separator: "/").last.map(String.init) ?? path
        target = .recording(.init(name: name, audio: audio, isEarly: isEarly, isMissed: shows == .missed))
      }
      out.rules[trigger.routed] = .init(target, after: rule.after)
    }
    return out
  }
}

extension Settings.Diversions.Trigger {
  fileprivate var routed: DiversionTrigger {
    switch self {
    case .unreached: .unreached
    case .busy: .busy
    case .declined: .declined
    case .noAnswer: .noAnswer
    case .mediaFailed: .mediaFailed
    }
  }
}

extension Settings.Trunk {
  fileprivate var routed: Routing.Trunk {
    let policy: SourcePolicy =
      switch rtpSource {
      case .signalledIP: .signalledIP
      case .symmetric: .symmetric
      case .strict: .strict
      }
    var out = Routing.Trunk(
      name: name, codecs: codecs, sourcePolicy: policy, mediaPeers: mediaPeers,
      prefersRelay: prefersRelay, maximumCalls: maximumCalls, rules: rules, signalsHold: calls.hold == .signal,
      sendsDigitsByInfo: calls.digits == .info, offersLate: calls.offersLate,
      digits: DigitTransport(rawValue: calls.digits.rawValue) ?? .rfc4733)
    switch calls.srtp {
    case .off: out.srtp = .off
    case .optional: out.srtp = .optional
    case .required: out.srtp = .required
    }
    out.tellsKeysInClear = calls.srtpWithoutTLS
    out.peers = peers
    switch calls.holdAudio {
    case .silence: break
    case .noise: out.holdAudio = .noise
    case .clip(let samples): out.holdAudio = AudioClip(samples).map { .clip($0) } ?? .noise
    }
    out.recordsPrivateNumbers = calls.recordsPrivateNumbers
    (out.settings, out.numbers, out.callsPerSecond) = (reached, numbers.rules, callsPerSecond)
    return out
  }

  private var rules: TrunkRules {
    let reliability: TrunkRules.Reliability =
      switch calls.reliability {
      case .off: .off
      case .supported: .supported
      case .required: .required
      }
    var rules = TrunkRules(
      reliability: reliability,
      sessionTimer: calls.sessionSeconds.map { .init(seconds: $0, minimumSeconds: calls.sessionMinimum) },
      redirects: calls.redirects == .follow ? .follow(hosts: Set(calls.redirectHosts)) : .refuse,
      trustsIdentity: calls.trustsIdentity, allowsTransfer: calls.allowsTransfer)
    rules.realm = realm
    if takesAnyPeer, let peerUsername, let peerPassword {
      rules.peerCredentials = Credentials(username: peerUsername, password: peerPassword.exposed)
    }
    return rules
  }

  private var reached: TrunkSettings? {
    guard let uri else { return nil }
    var credentials: Credentials?
    if let username, let password { credentials = Credentials(username: username, password: password.exposed) }
    let transport = uri.transport.flatMap { TransportProtocol(rawValue: $0.rawValue) }
    return TrunkSettings(
      name: name, domain: uri.domain,
      server: ServerURI(host: uri.host, port: uri.port, transport: transport, isSecure: uri.isSecure),
      credentials: credentials, registration: registration.map { .init(user: $0.user, expires: $0.expires) },
      probe: probe.map { .init(interval: $0.interval, downAfter: $0.downAfter, upAfter: $0.upAfter) })
  }
}

extension Settings.Numbers {
  fileprivate var rules: NumberRules {
    func made(_ rules: [Rule]) -> [NumberRules.Rule] { rules.map { .init(prefix: $0.prefix, strip: $0.strip, add: $0.add) } }
    return NumberRules(
      incoming: made(inbound), outgoing: made(outbound), caller: made(caller),
      country: country.map { .init(code: $0, international: international, national: national) })
  }
}

extension Settings {
  /// What `media:` means on this machine, with at least one address.
  func mediaPlane() throws -> MediaPlaneConfiguration {
    var found: [MediaPlaneConfiguration.Address] = []
    for address in media.addresses {
      switch address {
      case .automatic: found += try automaticAddresses().map { .init(bind: $0) }
      case .fixed(let bind, let advertise): found.append(.init(bind: bind, advertise: advertise))
      }
    }
    var seen: Set<IPAddress> = []
    found = found.filter { seen.insert($0.advertise).inserted }
    guard !found.isEmpty else { throw GatewayFailure("media.addresses: auto found no address on this machine; name one") }
    var configuration = MediaPlaneConfiguration(
      addresses: found, threads: media.threads, appPort: media.appPort, trunkPorts: media.trunkPorts)
    configuration.loadLimit = Double(media.loadLimitPercent) / 100
    return configuration
  }

  /// The machine's own addresses. Loopback comes last, and only for trunks on this very machine: apps never use it for ICE.
  private func automaticAddresses() throws -> [IPAddress] {
    let loopbackTrunk = trunks.contains { trunk in trunk.peers.contains { $0.address.isLoopback } }
    return try localAddresses(loopback: loopbackTrunk ? true : nil)
  }
}

/// Why a gateway cannot start; says what an operator can do.
struct GatewayFailure: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

extension Settings.Trunk {
  /// The servers that may talk to us besides `peers`: those a name has led to. An address in the URI is heard only if `peers`
  /// lists it; a name's servers cannot be listed beforehand.
  func servers(located: [SocketAddress]) -> [SocketAddress] {
    guard let address = uri?.address else { return located }
    return peers.contains { $0.contains(address.ip) } ? [address] : []
  }
}
