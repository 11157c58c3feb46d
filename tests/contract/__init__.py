"""The promises of the reliability and security pages, each as one test that every protocol must pass.

``protocols.PROTOCOLS`` has one entry for each protocol; a new protocol joins by one entry. Each module
``test_<property>.py`` takes the protocol as its parameter.
"""
