"""What is kept. No policy: ``protocols`` says what a store promises, each room below keeps one kind of thing."""
