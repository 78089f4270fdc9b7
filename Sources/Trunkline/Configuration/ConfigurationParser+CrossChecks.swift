import CallModel
import JSONWebToken
import TrunklineBytes

/// Checks over several keys: names that must exist, values that must not conflict.
extension ConfigurationParser {
  func crossCheck(_ configuration: Settings) {
    checkSecret(configuration.auth)
    checkExposure(configuration.listen, configuration.admin.tokens)
    checkPorts(configuration)
    checkTrunks(configuration.trunks)
    checkUsers(configuration.users)
    checkRoutes(configuration)
    checkTransports(configuration)
    checkReachability(configuration)
    checkAdvertised(configuration)
    checkCluster(configuration)
    checkRecords(configuration)
    if triesFiles {
      checkOwnAddresses(configuration)
      checkReach(configuration)
      checkCertificates(configuration)
      checkFolders(configuration)
    }
  }

  private func checkRecords(_ configuration: Settings) {
    guard configuration.streamsRecords, configuration.cluster?.nodes == nil else { return }
    problem(at: "records.stream", "needs cluster.shared_store: the stream is in that Redis")
  }

  private func checkSecret(_ auth: Settings.Auth) {
    guard isWritten("auth.jwt.key_file"), let keys = try? auth.keys(), keys.isWeak else { return }
    problem(
      at: "auth.jwt.key_file",
      "HS256 needs a key of \(JSONWebToken.Limits.strongSecretBytes) bytes or more: the key is the file's bytes as they are, base64 is "
        + "not decoded, white space at its end is ignored; make one with: head -c 32 /dev/urandom | base64 > jwt.key")
  }

  private func checkExposure(_ listen: Settings.Listen, _ tokens: [APIToken]) {
    if !listen.app.ip.isLoopback, listen.appTLS == nil, !isWritten("listen.app.tls") {
      let path = isWritten("listen.app.address") ? "listen.app.address" : "listen.app"
      problem(at: path, "\(listen.app) is not a loopback address, so tls: { cert: FILE, key: FILE } is required")
    }
    if !listen.admin.ip.isLoopback, listen.adminToken == nil, tokens.isEmpty, !isWritten("listen.admin.token_file"),
      !isWritten("admin.tokens")
    {
      let path = isWritten("listen.admin.address") ? "listen.admin.address" : "listen.admin"
      problem(at: path, "\(listen.admin) is not a loopback address, so token_file is required")
    }
  }

  /// Finds two TCP listeners on one address, and UDP ports that are used twice.
  private func checkPorts(_ configuration: Settings) {
    let listen = configuration.listen
    func overlap(_ a: SocketAddress, _ b: SocketAddress) -> Bool {
      a.port == b.port && (a.ip == b.ip || a.ip.isUnspecified || b.ip.isUnspecified)
    }
    if overlap(listen.app, listen.admin) { problem(at: "listen.admin", "\(listen.admin) is also listen.app's address") }
    for (key, addresses) in [("listen.sip.tcp", listen.sipTCP), ("listen.sip.tls.address", listen.sipTLS)] {
      for address in addresses {
        if overlap(address, listen.app) { problem(at: key, "\(address) is also listen.app's address") }
        if overlap(address, listen.admin) { problem(at: key, "\(address) is also listen.admin's address") }
      }
    }
    for tls in listen.sipTLS where listen.sipTCP.contains(where: { overlap($0, tls) }) {
      problem(at: "listen.sip.tls.address", "\(tls) is also listen.sip.tcp's address")
    }
    let media = configuration.media
    let last = Int(media.appPort) + media.threads - 1
    guard last <= 65535 else {
      problem(at: "media.app_port", "\(media.threads) threads need ports \(media.appPort)...\(last), beyond 65535")
      return
    }
    let appPorts = media.appPort...UInt16(last)
    if appPorts.overlaps(media.trunkPorts) {
      problem(
        at: "media.trunk_ports",
        "\(portText(media.trunkPorts)) meets the app ports \(portText(appPorts)) (app_port, one for each of \(media.threads) threads)"
      )
    }
    if media.trunkPorts.count < Limits.trunkPorts {
      problem(at: "media.trunk_ports", "needs at least \(Limits.trunkPorts) ports")
    }
    for udp in listen.sipUDP {
      if appPorts.contains(udp.port) { problem(at: "media.app_port", "\(portText(appPorts)) meets listen.sip.udp \(udp)") }
      if media.trunkPorts.contains(udp.port) {
        problem(at: "media.trunk_ports", "\(portText(media.trunkPorts)) meets listen.sip.udp \(udp)")
      }
    }
  }

  private func checkTrunks(_ trunks: [Settings.Trunk]) {
    var names: Set<String> = []
    var peers: [IPNetwork: String] = [:]
    for (index, trunk) in trunks.enumerated() {
      if !names.insert(trunk.name).inserted { problem(at: "trunks[\(index)].name", "\"\(trunk.name)\" is given twice") }
      for (row, peer) in trunk.peers.enumerated() {
        let rules = trunk.routing.rules
        if let other = peers[peer], other != rules.peersKnownAs {
          problem(at: "trunks[\(index)].peers[\(row)]", "\(peer) already belongs to trunk \"\(other)\"")
        } else {
          peers[peer] = rules.peersKnownAs ?? trunk.name
        }
      }
    }
  }

  private func checkUsers(_ users: [Routing.User]) {
    var ids: Set<String> = []
    var numbers: [Substring: String] = [:]
    for (index, user) in users.enumerated() {
      if !ids.insert(user.id).inserted { problem(at: "users[\(index)].id", "\"\(user.id)\" is given twice") }
      for (row, number) in user.numbers.enumerated() {
        let called = Routing.canonical(number)
        if let other = numbers[called] {
          problem(at: "users[\(index)].numbers[\(row)]", "\(number) already belongs to user \"\(other)\"")
        } else {
          numbers[called] = user.id
        }
      }
    }
  }

  private func checkRoutes(_ configuration: Settings) {
    let trunks = Dictionary(configuration.trunks.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let users = Set(configuration.users.map(\.id))
    for (index, row) in configuration.routes.inbound.enumerated() {
      if trunks[row.trunk] == nil { problem(at: "routes.inbound[\(index)].trunk", "there is no trunk \"\(row.trunk)\"") }
      if case .user(let id) = row.target, !configuration.mayExist(id, among: users) {
        problem(at: "routes.inbound[\(index)].user", "there is no user \"\(id)\"")
      }
      if case .hook(let hook) = row.target, case .user(let id) = hook.fallback, !configuration.mayExist(id, among: users) {
        problem(at: "routes.inbound[\(index)].route.fallback.user", "there is no user \"\(id)\"")
      }
    }
    for (index, row) in configuration.routes.inbound.enumerated() {
      checkDiversions(row.diversions, at: "routes.inbound[\(index)]", in: configuration)
    }
    for (index, user) in configuration.userRows.enumerated() {
      checkDiversions(user.diversions, at: "users[\(index)]", in: configuration, of: user.id)
    }
    var prefixes: Set<String> = []
    for (index, row) in configuration.routes.outbound.enumerated() {
      let path = "routes.outbound[\(index)]"
      if !prefixes.insert(row.prefix + (row.allowsEmergency ? "!" : "")).inserted {
        problem(at: path + ".prefix", "\"\(row.prefix)\" is given twice")
      }
      for (position, choice) in row.choices.enumerated() {
        let own = isWritten(path + ".trunks") ? path + ".trunks[\(position)]" : path + ".trunk"
        guard let trunk = trunks[choice.trunk] else {
          problem(at: own, "there is no trunk \"\(choice.trunk)\"")
          continue
        }
        if trunk.uri == nil { problem(at: own, "trunk \"\(choice.trunk)\" has no uri to call") }
      }
    }
  }

  /// SRTP keys in SDP require encrypted signalling.
  private func checkSRTP(_ trunk: Settings.Trunk, at path: String, listen: Settings.Listen) {
    guard trunk.routing.srtp != .off, !trunk.routing.sendsKeysInClear else { return }
    if let uri = trunk.uri, !uri.isSecure, uri.transport != nil || uri.address != nil {
      problem(at: path + ".srtp", "its keys go over TLS only: write sips: or ;transport=tls in uri, or srtp_without_tls: true")
    } else if listen.sipTLS.isEmpty {
      problem(at: path + ".srtp", "its keys go over TLS only: needs listen.sip.tls, or srtp_without_tls: true")
    }
  }

  /// Finds trunks whose transport has no listener.
  private func checkTransports(_ configuration: Settings) {
    let listen = configuration.listen
    for (index, trunk) in configuration.trunks.enumerated() {
      let path = "trunks[\(index)]"
      if let uri = trunk.uri, configuration.cluster?.edges?.sip == nil {
        let missing: String? =
          switch uri.isSecure ? .tls : uri.transport {
          case .udp?: listen.sipUDP.isEmpty ? "udp" : nil
          case .tcp?: listen.sipTCP.isEmpty ? "tcp" : nil
          case .tls?: listen.sipTLS.isEmpty ? "tls" : nil
          case nil: nil
          }
        if let missing { problem(at: path + ".uri", "needs listen.sip.\(missing)") }
      }
      checkSRTP(trunk, at: path, listen: listen)
    }
  }
}

extension Settings {
  /// The rows of `users:` in their order; that of `any` is the last.
  var userRows: [Routing.User] { users + (anyUser.map { [$0] } ?? []) }

  /// With `users: any` an unlisted user may exist.
  func mayExist(_ id: String, among listed: Set<String>) -> Bool { anyUser != nil || listed.contains(id) }
}
