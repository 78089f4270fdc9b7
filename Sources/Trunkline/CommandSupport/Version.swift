/// Of the gateway and of the lab: they are built together.
package enum Version {
  package static let number = "0.1.0"
  package static let text = "trunkline \(number)"
}
