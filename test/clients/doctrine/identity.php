<?php
// IDENTITY after a table was converted, with an application that cannot be changed.
require 'manager.php';

use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity, ORM\Table(name: 'counted')]
class Counted
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

#[ORM\Entity, ORM\Table(name: 'converted')]
class Converted
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

function add($em, $class)
{
    $entity = new $class;
    $entity->name = 'x';
    $em->persist($entity);
    $em->flush();
    return $entity->id;
}

if ($argv[1] === 'sequences') {
    $em = manager();
    foreach ([Counted::class, Converted::class, Counted::class, Converted::class] as $class) {
        $id = add($em, $class);
        $em->clear();
        ok($id > 10 ** 18 && $em->find($class, $id) !== null, "the ID of the row of $class", $id);
    }
} else {
    fails(fn () => add(manager(), Converted::class), 'an error where no sequence was used');
    $em = manager();
    $counted = add($em, Counted::class);
    same(add($em, Converted::class), $counted, 'and another table\'s number where one was');
}
finish();
