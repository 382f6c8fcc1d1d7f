-- Idle sandboxes are frozen and then ended; a setting for a step in between was taken and never did anything.
UPDATE servers SET settings = json_remove(settings, '$.idle.checkpoint_after_s');
