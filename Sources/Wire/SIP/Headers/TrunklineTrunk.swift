extension Message {
  /// What X-Trunkline-Trunk says, once for each field: the trunk that an edge of ours has taken the request from. Ours alone, in no RFC.
  public var trunklineTrunks: [String] { fields(.trunklineTrunk).map { text($0.value) } }
}
