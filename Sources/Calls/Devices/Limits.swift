// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Devices of one user: as many as ring together.
  static let devicesPerUser = 16
  /// Devices of one user that were revoked; beyond it the oldest revocation is forgotten.
  static let revokedPerUser = 64
  /// Devices in all.
  static let devices = 200_000
  /// Users whose devices a store returns in one page.
  static let usersOfPage = 1_000
  /// Push registrations of one device: services, and topics of one service.
  static let bindingsPerDevice = 4
  /// A device that was not seen for this long gives way to a new one of its user.
  static let staleMilliseconds: Int64 = 30 * 86_400_000
  /// Users whose devices one registration searches for such, if the table is full.
  static let usersPerStaleLook = 2_000
  /// All users are searched at most once in this time.
  static let staleLookMilliseconds: Int64 = 60_000
  /// A younger change of this node may not have reached the cluster's store.
  static let storeLagMilliseconds: Int64 = 60_000
  /// A device's last appearance is stored again when it has moved by more than this.
  static let lastSeenMilliseconds: Int64 = 3_600_000
}
