import Yams

/// A carrier's deviations from the defaults, as keys of a trunk: `profile: NAME` applies them where the trunk has no such key.
///
/// All facts are from the carriers' public documents; our tests run only `asterisk`.
public struct TrunkProfile: Sendable {
  public var name: String
  public var title: String
  /// Keys of a trunk, as YAML.
  public var keys: String
  /// The keys that the trunk itself must have.
  public var needs: String
  /// The source of the facts.
  public var source: String

  public static let all: [TrunkProfile] = [
    .init(
      name: "asterisk", title: "Asterisk, FreePBX",
      keys: """
        codecs: [ opus, G722, PCMU, PCMA ]
        probe: 30s
        transfers: true
        hold: signal
        """,
      needs: "uri", source: "pjsip.conf of Asterisk 22; tried with Asterisk from Debian sid"),
    .init(
      name: "plivo", title: "Plivo Zentrunk",
      keys: """
        codecs: [ PCMU, PCMA ]
        reliable: off
        dtmf: rfc4733
        probe: 30s
        """,
      needs: "uri (ID.zt.plivo.com), auth or an IP ACL there, peers",
      source: "plivo.com/docs/sip-trunking/concepts/technical-specifications: no PRACK, no INFO, no REGISTER; DTMF by RFC 2833"),
    .init(
      name: "sipgate", title: "sipgate trunking",
      keys: """
        uri: "sip:sipconnect.sipgate.de"
        register: true
        from: { domain: sipconnect.sipgate.de }
        numbers:
          country: "49"
          outbound: [ { prefix: "+", strip: 1 } ]
          caller: [ { prefix: "+", strip: 1 } ]
        codecs: [ PCMA, PCMU ]
        """,
      needs: "auth (SIP-ID), from.user (the SIP-ID)",
      source: "help.sipgate.de/trunking/wie-setze-ich-bei-sipgate-trunking-die-absenderrufnummer: P-Preferred-Identity without +"),
    .init(
      name: "teams", title: "Microsoft Teams Direct Routing",
      keys: """
        uri: "sip:sip.pstnhub.microsoft.com:5061;transport=tls"
        peers: [ 52.112.0.0/14, 52.122.0.0/15 ]
        media_peers: [ 52.112.0.0/14, 52.120.0.0/14 ]
        srtp: required
        probe: 1m
        transfers: true
        codecs: [ PCMU, PCMA ]
        """,
      needs: "advertise and from.domain (the name of the SBC, as in its certificate), listen.sip.tls",
      source: "learn.microsoft.com/microsoftteams/direct-routing-plan and direct-routing-protocols-sip"),
    .init(
      name: "telekom", title: "Deutsche Telekom CompanyFlex SIP trunk",
      keys: """
        uri: "sip:tel.t-online.de;transport=tcp"
        register: true
        from: { domain: tel.t-online.de }
        numbers: { country: "49" }
        codecs: [ PCMA, PCMU ]
        """,
      needs: "auth, outbound_proxy (sip:ID.primary.companyflex.de;transport=tcp)",
      source: "Technical specification 1TR119 of Deutsche Telekom"),
    .init(
      name: "telnyx", title: "Telnyx SIP trunking",
      keys: """
        uri: "sip:sip.telnyx.com"
        peers: [ 192.76.120.10, 64.16.250.10, 5.172.39.10, 5.172.39.25, 193.108.220.10, 193.108.220.25, 103.135.104.10, 103.135.104.25 ]
        probe: 30s
        """,
      needs: "auth with register: true, or an IP connection there",
      source: "developers.telnyx.com/docs/voice/sip-trunking/routing/failover-and-retries"),
    .init(
      name: "twilio", title: "Twilio Elastic SIP Trunking",
      keys: """
        peers:
          - 54.172.60.0/30
          - 54.244.51.0/30
          - 54.171.127.192/30
          - 35.156.191.128/30
          - 54.65.63.192/30
          - 54.169.127.128/30
          - 54.252.254.64/30
          - 177.71.206.192/30
        media_peers: [ 168.86.128.0/18 ]
        codecs: [ PCMU, PCMA ]
        """,
      needs: "uri (NAME.pstn.twilio.com), auth or an IP ACL there",
      source: "twilio.com/docs/sip-trunking/ip-addresses"),
    .init(
      name: "whatsapp", title: "WhatsApp Business calling over SIP",
      keys: """
        uri: "sip:wa.meta.vc;transport=tls"
        peers: any
        codecs: [ opus ]
        srtp: required
        """,
      needs: "auth and peer_auth (number and SIP password), advertise (the name in the certificate), listen.sip.tls; SDES there",
      source:
        "developers.facebook.com/docs/whatsapp/cloud-api/calling/sip: TLS with a public certificate, digest, Opus, SDES on request"
    ),
  ]

  static func named(_ name: String) -> TrunkProfile? { all.first { $0.name == name } }

  /// The output of `trunkline config profiles`.
  public static let text =
    "Keys that `profile: NAME` of a trunk sets. The trunk's own keys take precedence. Source: public documents; not tried with\n"
    + "the carriers themselves, but for asterisk.\n\n"
    + all.map { profile in
      let lines = profile.keys.split(separator: "\n").map { "    " + $0 }.joined(separator: "\n")
      return "\(profile.name): \(profile.title)\n\(lines)\n  needs: \(profile.needs)\n  source: \(profile.source)\n"
    }.joined(separator: "\n")
}

extension Field {
  /// A trunk with the keys of its profile added to its own.
  var profiled: Field {
    // a test checks the table's YAML
    guard case .mapping(var mapping)? = node, let profile = mapping["profile"]?.text.flatMap(TrunkProfile.named),
      case .mapping(let keys)? = try? Yams.compose(yaml: profile.keys)
    else { return self }
    merge(keys, into: &mapping)
    return Field(parser: parser, node: .mapping(mapping), path: path)
  }

  /// Adds the missing keys; in an existing mapping, one by one.
  private func merge(_ keys: Node.Mapping, into mapping: inout Node.Mapping) {
    for (key, value) in keys {
      switch (mapping[key], value) {
      case (nil, _): mapping[key] = unmarked(value)
      case (.mapping(var own)?, .mapping(let more)):
        merge(more, into: &own)
        mapping[key] = .mapping(own)
      default: break
      }
    }
  }

  /// Removes the node's position in the table, so that a problem with it is reported at the trunk.
  private func unmarked(_ node: Node) -> Node {
    switch node {
    case .scalar(let scalar): .scalar(.init(scalar.string, scalar.tag, scalar.style))
    case .mapping(let mapping):
      .mapping(.init(mapping.map { (unmarked($0.key), unmarked($0.value)) }, mapping.tag, mapping.style))
    case .sequence(let sequence): .sequence(.init(sequence.map(unmarked), sequence.tag, sequence.style))
    case .alias: node
    }
  }
}
