"""One visitor and what all visitors share: settings, link, services, limits, messages."""
