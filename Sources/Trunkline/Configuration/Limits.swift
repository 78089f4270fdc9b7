// The named limits of this module.
