import CallModel
import TrunklineBytes

extension ConfigurationKeys {
  static let media = KeyTable<Settings>(
    .init(), .atRestart,
    [
      .init(
        "addresses", .list(mediaAddress.form, limit: 16), default: .value("[ auto ]"),
        "Where RTP is received. `auto`: the machine's own addresses, those of now for each call; behind NAT a mapping with `advertise`.",
        inner: mediaAddress
      ) { field, out in
        guard field.isWritten else { return }
        let items = field.items(limit: 16)
        if items.isEmpty { field.problem("is empty; write auto for the machine's own addresses") }
        out.media.addresses = items.compactMap { mediaAddress.value($0)?.address }
      },
      .integer(
        "threads", \.media.threads, Limits.mediaThreads, "Media threads; as many as cores that calls may fill."),
      .integer(
        "load_limit", \.media.loadLimitPercent, 1...100,
        "Percent of a core that one media thread may fill; beyond it new calls get 503."),
      .integer(
        "opus_bitrate", \.calls.opusBitrate, Limits.opusBitrate,
        "bit/s of Opus that apps send at most on the average (`maxaveragebitrate`) while the trunk's codec is narrow; below 20000 Opus has no FEC."
      ),
      .integer(
        "opus_bitrate_wide", \.calls.opusBitrateWide, Limits.opusBitrate,
        "The same while the trunk's codec is G722, or not negotiated yet and may be wide."),
      .integer(
        "app_port", \.media.appPort, 1024...65535,
        "The first UDP port toward apps; each media thread uses one. Open them in the firewall."),
      .value(
        "trunk_ports", \.media.trunkPorts, "port range from 1024 to 65535",
        default: .value(portText(Settings.Media().trunkPorts)), expected: "a port range such as 20000-21999",
        "UDP ports toward trunks, two for each call: RTP and RTCP.", parse: portRange),
    ])

  /// `auto`, an address, or `{ bind: ADDRESS, advertise: ADDRESS }`.
  private static let mediaAddress = KeyTable<MediaAddressDraft>(
    .init(), .atRestart, about: "For a machine behind NAT.", short: "bind",
    [
      .init(
        "bind", .text("IP address or `auto`"), default: .required(), "The address of this machine that sockets are bound to."
      ) { field, out in
        let expected =
          field.isShort ? "auto, an address, or { bind: ADDRESS, advertise: ADDRESS }" : "auto, or an IPv4 or IPv6 address"
        out.bind = field.value(expected) { $0 == "auto" ? .automatic : IPAddress($0).map { .address($0) } }
      },
      .init(
        "advertise", .text("address or host name, or `env:NAME`"), default: .none("that of `bind`"),
        "The public address that SDP and ICE candidates name; of the same family. A name is looked up at the start and each minute, every two seconds while DNS does not have it."
      ) { field, out in
        out.advertise = field.advertisedHost(acceptsPort: false)
      },
    ], rules: [oneFamily])

  @Sendable private static func oneFamily(_ section: Section, _ address: inout MediaAddressDraft) {
    guard case .address(let bind)? = address.bind, let family = address.advertise?.address?.family, family != bind.family else {
      return
    }
    section.problem("bind and advertise must be of one family")
  }
}

/// A row of `media.addresses`.
private struct MediaAddressDraft: Sendable {
  enum Bind { case automatic, address(IPAddress) }
  var bind: Bind?
  var advertise: AdvertisedHost?

  /// Nil after an error.
  var address: Settings.MediaAddress? {
    switch bind {
    case nil: nil
    case .automatic: .automatic(advertise: advertise)
    case .address(let bind): .fixed(bind: bind, advertise: advertise)
    }
  }
}
